/** The container engine that the tests run against, by its own command line. */
import { execFile, execFileSync } from 'node:child_process'

/** Images by name, so that others may stand in for them. */
export const IMAGE = process.env['HUB2MQTT_IMAGE'] ?? 'hub2mqtt:test'
/** The same Dockerfile's variant for Home Assistant. */
export const APP_IMAGE = `${IMAGE}-home-assistant`
export const MOSQUITTO_IMAGE = process.env['MOSQUITTO_IMAGE'] ?? 'eclipse-mosquitto:2'

/** With REQUIRE_DOCKER=1 the absence of an engine is an error instead of a reason to skip. */
export const hasDocker = findDocker()

function findDocker(): boolean {
  try {
    execFileSync('docker', ['info'], { stdio: 'ignore' })
    return true
  } catch {
    if (process.env['REQUIRE_DOCKER'] === '1') throw new Error('REQUIRE_DOCKER=1, but there is no Docker engine')
    process.stderr.write('there is no Docker engine: the container tests are skipped\n')
    return false
  }
}

/** Runs a command to its end and returns all that it printed; rejects with that if it fails. */
export function execute(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const options = { env: { ...process.env, ...env }, maxBuffer: 64 * 1024 * 1024 }
  return new Promise((resolve, reject) => {
    execFile(command, args, options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout + stderr)
      else reject(new Error(`${command} ${args.join(' ')}\n${stdout}${stderr}`, { cause: error }))
    })
  })
}

export const docker = (...args: readonly string[]) => execute('docker', args)
