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
 * Runs the bridge. @param onReady called when the bridge is ready for the first time
 * @param onPage called with the page's address, which contains the login token
 * @param storeUrl address of the app store; default: the public store
 */
export async function daemon(
  request: LoadOptions,
  onReady = () => {},
  onPage?: (address: string) => void,
  storeUrl?: string,
): Promise<number> {
  // mqtt-packet caches a small buffer for each packet length. Each cached buffer keeps its pool alive, so with pools of
  // the default size, memory would grow for weeks.
  Buffer.poolSize = BUFFER_POOL_BYTES
  const result = await load(request)
  const { log: wanted, http } = result.loaded.config
  // Keep the latest log lines in memory only if the page can show them.
  const log = createLog({ ...wanted, secrets: result.loaded.secrets, keep: http.enabled && http.page })
  exitOnBug(log)
  const { signal, onReload } = daemonSignals()
  const world = { version: VERSION, clock: systemClock, random: Math.random, log, signal, onReload }
  const app = await import('../app.ts')
  const shown = { ...world, onPage: onPage ?? printerOf(log) }
  const { firstRun, loaded: unfinished, problem } = result
  const sessions = firstRun && (await firstRun(request, { loaded: unfinished, problem }, shown))
  if (signal.aborted) return exitCodes.ok.code
  const loaded = sessions === undefined ? result.loaded : loadConfig(request)
  const { secrets, warnings, fileIsEmpty } = loaded
  // After a first run, the file may set another level than the configuration with which the log was created.
  log.setLevel(loaded.config.log.level)
  for (const secret of secrets) log.addSecret(secret)
  const hubs = Object.keys(loaded.config.hubs).length
  limitHeap(hubs)
  for (const warning of warnings) log.warn(warning)
  await app.run({
    ...loaded,
    // On a reload, reject an empty file: an editor may not have finished writing it, and it would remove all hubs.
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

/** Prints an address once, and again if it becomes valid again. Does not log it, because others may read the log. */
function printerOf(log: Log): (address: string, isRestored: boolean) => void {
  let printed: string | undefined
  return (address, isRestored) => {
    if (isRestored || address !== printed) log.print(`the page, with full access: ${address}`)
    printed = address
  }
}

/** Loads the configuration. If it lacks only a hub, also returns the error, and the function that serves the setup. */
async function load(request: LoadOptions) {
  try {
    return { loaded: loadConfig(request) }
  } catch (problem) {
    if (!(problem instanceof ConfigError)) throw problem
    const { firstRun, loadUnfinished } = await (await import('../app.ts')).importFirstRun()
    return { loaded: loadUnfinished(problem, request), problem, firstRun }
  }
}

/** Exits on a bug. The broker then publishes the bridge's will, which informs the subscribers. */
function exitOnBug(log: Log): void {
  process.on('uncaughtException', (error, origin) => {
    log.fatal({ err: error, origin }, 'hub2mqtt has a bug and cannot continue')
    process.exit(exitCodes.failed.code)
  })
}
