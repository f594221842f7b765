/** `hub2mqtt run`: runs the daemon. */
import { systemClock } from '../base/clock.ts'
import { VERSION } from '../base/version.ts'
import { type LoadOptions, loadConfig } from '../config/load.ts'
import { ConfigError } from '../config/mistakes.ts'
import { createLog, type Log } from '../observability/log.ts'
import { type Body, type ConfigFlag, exitCodes } from './command.ts'
import { limitHeap, limitHeapAtRest } from './memory.ts'
import { daemonSignals } from './signals.ts'

const BUFFER_POOL_BYTES = 512

export const run: Body<ConfigFlag> = ({ env }, { config }) => daemon({ file: config, env })

/**
 * `onReady` is called when the bridge is ready for the first time, `onPage` with the address that logs in a browser.
 * `storeUrl`: address of the app store; default: the public one.
 */
export async function daemon(
  request: LoadOptions,
  onReady = () => {},
  onPage?: (address: string) => void,
  storeUrl?: string,
): Promise<number> {
  // mqtt-packet keeps a few bytes for each packet length it has seen, and each keeps its pool alive: with pools of the
  // usual size, that memory would grow for weeks.
  Buffer.poolSize = BUFFER_POOL_BYTES
  const begun = await begin(request)
  const { log: wanted, http } = begun.loaded.config
  // Only the page shows them.
  const log = createLog({ ...wanted, secrets: begun.loaded.secrets, keep: http.enabled && http.page })
  exitOnMistake(log)
  const { signal, onReload } = daemonSignals()
  const world = { version: VERSION, clock: systemClock, random: Math.random, log, signal, onReload }
  const app = await import('../app.ts')
  const shown = { ...world, onPage: onPage ?? printerOf(log) }
  const { firstRun, loaded: unfinished, problem } = begun
  const sessions = firstRun && (await firstRun(request, { loaded: unfinished, problem }, shown))
  if (signal.aborted) return exitCodes.ok.code
  const loaded = sessions === undefined ? begun.loaded : loadConfig(request)
  const { secrets, warnings, fileIsEmpty } = loaded
  for (const secret of secrets) log.addSecret(secret)
  const hubs = Object.keys(loaded.config.hubs).length
  limitHeap(hubs)
  for (const warning of warnings) log.warn(warning)
  await app.run({
    ...loaded,
    // A file that an editor has just begun to write must not remove everything.
    load: () => loadConfig({ ...request, requireContent: !fileIsEmpty }),
    ...(sessions && { sessions }),
    ...shown,
    storeUrl,
    onReady() {
      limitHeapAtRest(hubs)
      onReady()
    },
  })
  return exitCodes.ok.code
}

/** Prints the address of the page once, because a setup keeps it. Not in the log, which others may read. */
function printerOf(log: Log): (address: string) => void {
  let printed: string | undefined
  return (address) => {
    if (address !== printed) log.print(`the page, to look and to change things: ${address}`)
    printed = address
  }
}

/** The configuration; or one that only lacks a hub, its mistake, and the setup page's server. */
async function begin(request: LoadOptions) {
  try {
    return { loaded: loadConfig(request) }
  } catch (problem) {
    if (!(problem instanceof ConfigError)) throw problem
    const { firstRun, loadUnfinished } = await (await import('../app.ts')).importFirstRun()
    return { loaded: loadUnfinished(problem, request), problem, firstRun }
  }
}

/** Logs an uncaught error with its context and exits; the will informs the subscribers. */
function exitOnMistake(log: Log): void {
  process.on('uncaughtException', (error, origin) => {
    log.fatal({ err: error, origin }, 'hub2mqtt made a mistake that it cannot go on from')
    process.exit(exitCodes.failed.code)
  })
}
