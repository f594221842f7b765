/** The program: reads the command line and the environment, and says with its exit code how it ended. */
import { exitCodes, parseCommandLine, UsageError } from './cli.ts'
import { systemClock } from './clock.ts'
import { ConfigError } from './config/mistakes.ts'
import type { Log } from './log.ts'
import { VERSION } from './version.ts'

const { ok, failed, usage } = exitCodes

function main(): number | Promise<number> {
  const line = parseCommandLine(process.argv.slice(2))
  switch (line.command) {
    case 'help':
      console.log(line.text)
      return ok.code
    case 'version':
      console.log(VERSION)
      return ok.code
    case 'check-config':
      return checkConfig(line.config)
    case 'run':
      return daemon(line.config, process.env)
    case 'demo':
      return demo(line.config)
    case 'emulate':
      return emulateHub(line)
  }
}

async function checkConfig(file: string | undefined): Promise<number> {
  const { loadConfig } = await import('./config/load.ts')
  const { describeConfig } = await import('./config/describe.ts')
  const { config, warnings } = loadConfig({ file, env: process.env })
  for (const warning of warnings) console.error(`warning: ${warning}`)
  console.log(describeConfig(config))
  return ok.code
}

async function daemon(file: string | undefined, env: NodeJS.ProcessEnv): Promise<number> {
  const { loadConfig } = await import('./config/load.ts')
  const { createLog } = await import('./log.ts')
  const { run } = await import('./run.ts')
  const { config, secrets, warnings } = loadConfig({ file, env })
  const log = createLog({ ...config.log, secrets })
  diesLoudly(log)
  for (const warning of warnings) log.warn(warning)
  await run({ config, version: VERSION, clock: systemClock, random: Math.random, log, signal: stopSignal() })
  return ok.code
}

/** The daemon beside a hub that is not there; only here is the emulator used in its place. */
async function demo(file: string | undefined): Promise<number> {
  const { randomBytes } = await import('node:crypto')
  const { emulate } = await import('./emulator/command.ts')
  const key = randomBytes(16).toString('hex')
  await using hub = await emulate({
    port: 0,
    flavour: 'older',
    apiKeys: [{ key, scopes: ['hub.app', 'hub.speech'] }],
    crashes: true,
  })
  const { HUB2MQTT_HUB_API_KEY_FILE: _, ...env } = process.env
  return await daemon(file, { ...env, HUB2MQTT_HUB_URL: hub.url, HUB2MQTT_HUB_API_KEY: key })
}

async function emulateHub(line: Extract<ReturnType<typeof parseCommandLine>, { command: 'emulate' }>): Promise<number> {
  const { emulate, parseApiKey } = await import('./emulator/command.ts')
  await using hub = await emulate({ ...line, apiKeys: line.apiKeys.map(parseApiKey) })
  console.log(`emulated hub listening on ${hub.url}`)
  const signal = stopSignal()
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
  return ok.code
}

/** Aborts at SIGINT or SIGTERM. A terminal and a launcher may both send one, so that a second is no impatience. */
function stopSignal(): AbortSignal {
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => stop.abort())
  return stop.signal
}

/** A mistake of ours that nobody caught: said with all its context, then the end, and the will tells the subscribers. */
function diesLoudly(log: Log): void {
  const die = (error: unknown, origin: string) => {
    log.fatal({ err: error, origin }, 'hub2mqtt made a mistake that it cannot go on from')
    process.exit(failed.code)
  }
  process.on('uncaughtException', die)
}

/** Mistakes of the user are told as lines; everything else, with its stack, is ours. */
function explain(error: unknown): number {
  if (error instanceof ConfigError || error instanceof UsageError) {
    for (const mistake of error instanceof ConfigError ? error.mistakes : [error.message])
      console.error(`hub2mqtt: ${mistake}`)
    return usage.code
  }
  const expected = error instanceof Error && ['EmbeddedBrokerError', 'EmulatorOptionError'].includes(error.name)
  console.error(expected ? `hub2mqtt: ${error.message}` : error)
  return expected && error.name === 'EmulatorOptionError' ? usage.code : failed.code
}

process.exitCode = await Promise.try(main).catch(explain)
