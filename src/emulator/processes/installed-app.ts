/** An installed app: its stored state, its record and, while it runs, its process. */
import { type Clock, within } from '../../base/clock.ts'
import type { AppsHost } from '../core/hub-apps.ts'
import type { Packages, Unpacked } from '../data/packages.ts'
import { CURED, type SqliteState, type StoredApp } from '../data/state.ts'
import { HubError } from '../hub-error.ts'
import { type AppRecord, GENERATIONS, NO_USAGE, type Patch, recordOf, type Usage } from '../records.ts'
import { type AppHandlers, AppProcess, type End } from './app-process.ts'
import type { HubMessage } from './channel.ts'
import { Output } from './output.ts'
import { supervise } from './supervisor.ts'
import type { Limits, Watch } from './watch.ts'

/** What all apps of a hub share. */
export interface World {
  readonly clock: Clock
  readonly state: SqliteState
  readonly host: AppsHost
  readonly limits: Limits
  readonly watch: Watch
  readonly packages: Packages
  /** Whether the hub is stopping or rebooting; then no app is started. */
  readonly isDown: () => boolean
  /** Called with each line that an app writes, or that the hub writes about it. */
  readonly onLine: ((id: string, line: string) => void) | undefined
  /** The records of all apps; each app keeps its own up to date. */
  readonly records: Map<string, AppRecord>
}

/** How often the usage is sent to clients; an answer always has the latest. */
const SEND_USAGE_MS = 10_000
/** How long a new version may take to start before the previous one is restored. */
const TRIAL_MS = 10_000

export type InstalledApp = ReturnType<typeof installedApp>

export function installedApp(given: Unpacked, row: StoredApp, world: World) {
  const { clock, host, limits, onLine, packages, records, watch } = world
  const { id } = row
  const generation = GENERATIONS[host.flavour]
  const output = new Output(onLine && ((line) => onLine(id, line)))
  const supervisor = supervise(launch, enter, onEnd)
  let code = given
  let stored = row
  let offer = newerVersion()
  let record = recordAtRest()
  let usageSentAt = Number.NEGATIVE_INFINITY
  /** Whether the app is uninstalled; then its changes are no longer stored or sent. */
  let isGone = false
  /** Whether a new version is starting; then its crash is not sent yet. */
  let onTrial = false
  keep({})

  /** The running process. @throws HubError 503 */
  function running(): AppProcess {
    const process = supervisor.process()
    if (process === undefined) throw new HubError(503, 'not_running', 'The app does not run')
    return process
  }

  /** Resolves when the process has started; waits for the previous one to end. */
  function start(): Promise<void> {
    return world.isDown() ? Promise.resolve() : supervisor.start()
  }

  /** Resolves when all processes have ended. */
  const stop = () => supervisor.stop()

  /** Starts the new version; resolves with the problem if it does not start. */
  async function startOnTrial(): Promise<string | undefined> {
    await start()
    const process = supervisor.process()
    if (process === undefined) return stored.enabled ? 'Error: the process did not start' : undefined
    const isReady = await within(clock, TRIAL_MS, process.ready)
    if (isReady) return undefined
    if (isReady === undefined) return `it took more than ${TRIAL_MS / 1000} s`
    const { requested, message } = await process.ended
    // A version that was stopped before it started did not fail.
    return requested ? undefined : message
  }

  function take(other: Unpacked, row: StoredApp): void {
    const { usage, state } = record
    use(other, row)
    store({})
    show({ ...generation.recovered, ...generation.stands(state === 'crashed' ? 'stopped' : state), usage })
  }

  function use(other: Unpacked, row: StoredApp): void {
    code = other
    stored = row
    offer = newerVersion()
    record = recordAtRest()
  }

  function recordAtRest(): AppRecord {
    const { version, enabled, autoupdate, channel, origin, crashed, crashedCount } = stored
    const { name, author, settings, permissions, color } = code.manifest
    const seed = { id, name, version, author, enabled, autoupdate, channel, origin, update: offer }
    return {
      ...recordOf({ ...seed, settings, permissions, color, hasDrivers: false }, host.flavour),
      ...generation.stands('stopped'),
      usage: NO_USAGE,
      [generation.counter]: crashedCount,
      ...(crashed && generation.crash(stored)),
    }
  }

  /** The newer version in the store, if there is one. */
  function newerVersion(): string | undefined {
    const { channel, version } = stored
    const found = packages.find({ id, channel, present: version })
    return found?.version === version ? undefined : found?.version
  }

  async function launch(): Promise<AppProcess> {
    const { folder, manifest } = code
    const handlers = handlersFor(id, world, (message) => supervisor.process()?.send(message))
    const launched = { id, version: stored.version, folder, main: manifest.main, memoryLimit: limits.memory }
    const process = await AppProcess.start(launched, clock, output, handlers)
    void process.ended.then(() => handlers.end())
    // Send the usage of a new process as soon as it is known.
    usageSentAt = Number.NEGATIVE_INFINITY
    watch.add(process, see)
    return process
  }

  function enter(state: 'starting' | 'running' | 'stopping'): void {
    const starts = state === 'starting'
    if (state === 'running') output.show('running')
    if (starts && !onTrial) storeIfPossible(CURED)
    show({ ...(starts && generation.recovered), ...generation.stands(state) })
  }

  function onEnd({ requested, code: exitCode, signal: exitSignal, message: crashedMessage }: End): void {
    output.show(requested ? 'stopped' : `crashed: ${crashedMessage.split('\n', 1)[0]}`)
    if (requested) return void show({ usage: NO_USAGE, ...generation.stands('stopped') })
    if (onTrial) return
    const crashedCount = stored.crashedCount + 1
    storeIfPossible({ crashed: true, crashedMessage, crashedCount, exitCode, exitSignal })
    show({ ...generation.crash(stored), usage: NO_USAGE })
  }

  function see(usage: Usage): void {
    const now = clock.elapsed()
    if (now - usageSentAt < SEND_USAGE_MS) return void keep({ usage })
    usageSentAt = now
    show({ usage })
  }

  function store(changed: Partial<StoredApp>): void {
    stored = { ...stored, ...changed }
    if (!isGone) world.state.put(stored)
  }

  /** Stores a change that no client waits for: writes a failure only to the app's output. */
  function storeIfPossible(changed: Partial<StoredApp>): void {
    try {
      store(changed)
    } catch (error) {
      output.note(`not stored: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  function keep(patch: Patch): void {
    record = { ...record, ...patch }
    if (!isGone) records.set(id, record)
  }

  function show(patch: Patch): void {
    keep(patch)
    if (!isGone) host.sendEvent('app.update', record)
  }

  return {
    output,
    running,
    start,
    stop,
    stored: () => stored,
    pid: () => supervisor.process()?.pid,

    /** Stops the app permanently and sends no more of its changes. */
    leave(): Promise<void> {
      isGone = true
      return stop()
    },

    /** Changes the stored state and the record together. */
    change(changed: Partial<StoredApp>, patch: Patch): void {
      store(changed)
      show(patch)
    },

    /** Sends an event if the newer version in the store has changed. */
    lookForOffer(): void {
      const found = newerVersion()
      if (found === offer || onTrial) return
      offer = found
      show({ updateAvailable: generation.offer(found) })
    },

    /** Notifies the app of a setting that another client changed. */
    notifySetting: (name: string, value?: unknown) => supervisor.process()?.send({ type: 'setting', name, value }),

    /** Collects garbage and sends the new usage. */
    async collectGarbage(): Promise<void> {
      const process = running()
      await process.collectGarbage()
      watch.lookAt(process)
      show({})
    },

    /**
     * Replaces this version with another, and restores it if the other does not start.
     * @throws HubError 500 with the reason
     */
    async replace(other: Unpacked, changed: Partial<StoredApp>): Promise<void> {
      const former = { code, stored, wasUp: supervisor.isUp() }
      const taken = { ...stored, ...changed, folder: other.folder, version: other.manifest.version }
      if (!taken.enabled) return take(other, taken)
      onTrial = true
      await stop()
      use(other, taken)
      const problem = await startOnTrial().finally(() => {
        onTrial = false
      })
      if (problem === undefined) return take(code, { ...stored, ...CURED })
      await stop()
      const { enabled, autoupdate } = stored
      use(former.code, { ...former.stored, enabled, autoupdate })
      store({})
      show({})
      if (former.wasUp && enabled) await start()
      throw new HubError(500, 'install_failed', `Version ${taken.version} does not start: ${problem}`)
    },

    /** Restarts the app after its files have changed in place, even if it may crash. */
    async reload(other: Unpacked): Promise<void> {
      await stop()
      if (isGone) return
      take(other, { ...stored, ...CURED, version: other.manifest.version })
      if (stored.enabled) await start()
    },
  }
}

/** Answers the requests of a running app and forwards its events until the app has ended. */
function handlersFor(id: string, { host, state }: World, sendToApp: (message: HubMessage) => void) {
  const subscriptions = new Map<string, () => void>()
  let ended = false
  const subscribe = (uri: string): void => {
    if (ended || subscriptions.has(uri)) return
    const send = (event: string, payload: unknown) => sendToApp({ type: 'event', uri, event, payload })
    subscriptions.set(uri, host.inApp.subscribe(id, uri, send))
  }
  return {
    answer(request) {
      if (request.type === 'subscribe') return subscribe(request.uri)
      if (request.type === 'call') {
        const { section, item, operation, args } = request
        return host.inApp.call(id, { section, item, operation, args })
      }
      const { operation, name, value } = request
      if (operation === 'get') return state.settings(id).get(name)
      if (operation === 'all') return Object.fromEntries(state.settings(id))
      return operation === 'set' ? state.setSetting(id, name, value) : state.unsetSetting(id, name)
    },
    notice(notice) {
      if (ended) return
      if (notice.type === 'emit') return host.inApp.emit(id, notice.event, notice.payload)
      subscriptions.get(notice.uri)?.()
      subscriptions.delete(notice.uri)
    },
    end() {
      ended = true
      for (const unsubscribe of subscriptions.values()) unsubscribe()
      subscriptions.clear()
    },
  } satisfies AppHandlers & { end(): void }
}
