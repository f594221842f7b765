/** The container engine that the tests run against, by its own command line. */
import { execFileSync } from 'node:child_process'
import { execute } from '../../support/process.ts'

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
    process.stderr.write('skipped: the container tests, as there is no Docker engine (docker info fails)\n')
    return false
  }
}

export const docker = (...args: readonly string[]) => execute('docker', args)
