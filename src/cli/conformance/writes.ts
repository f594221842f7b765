/** Write tests, which change the app that the user has specified, and restore it afterwards. */
import { isDeepStrictEqual } from 'node:util'
import { type Clock, sleep } from '../../base/clock.ts'
import { isRecord } from '../../base/json.ts'
import { compareVersions } from '../../base/versions.ts'
import { failed, notTried, unknown, type Verdict, verdict } from './expectations.ts'
import { type Client, isOk, type Observation, outcomeOf, recordOf, summary } from './observation.ts'
import { type AppRecord, type Extra, operate, type ProbeName, type Reading } from './probes.ts'
import type { HubEvent, Session } from './realtime.ts'
import { type Item, type Leftovers, restoreApp, runs, SETTING } from './restore.ts'

const VALUE = { a: [1, null, 'b'] }
/** Time limits for an event to arrive, for the record to show a change, and for an app to start or stop. */
const EVENT_MS = 3_000
const SHOW_MS = 5_000
const START_MS = 60_000
const CHECK_MS = 1_000
const INSTALL_MS = 60_000
/** A channel that no app has. */
const NO_CHANNEL = SETTING

/** Write tests whose results follow from several answers. Their names are ids of expectations. */
export type Trial =
  | 'events'
  | 'setting-kept'
  | 'setting-gone'
  | 'autoupdate'
  | 'channel-ignored'
  | 'disable'
  | 'enable'
  | 'std-message'
  | 'downgrade'

export type WritesSeen = Leftovers & { readonly trials: ReadonlyMap<Trial, Verdict>; readonly stopped: boolean }

export interface WritesOptions {
  readonly client: Client
  readonly reading: Reading
  readonly app: string
  /** The version to install; default: 1.0.0 if the app's version is higher. */
  readonly downgrade: string | undefined
  readonly session: Session | undefined
  readonly clock: Clock
  /** When this signal aborts, the write tests stop. The app is still restored. */
  readonly signal: AbortSignal
  readonly onRestore: () => void
}

export async function write(options: WritesOptions): Promise<WritesSeen> {
  const { reading, signal, onRestore } = options
  reading.noWrites = 'stopped before'
  const writer = newWriter(options)
  const record = recordOf(reading.answers.get('getApp')) ?? {}
  let left: Leftovers
  try {
    await writer.tryAll(record)
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error
  } finally {
    onRestore()
    left = await restoreApp(options, record, writer.touched, writer.lost)
  }
  return { trials: writer.trials, stopped: signal.aborted, ...left }
}

type Variant = 'readBack' | 'unsetAgain'

function newWriter({ client, reading, app, downgrade: wanted = '1.0.0', session, clock, signal }: WritesOptions) {
  const trials = new Map<Trial, Verdict>()
  const touched = new Set<Item>()
  const lost = new Set<Item>()
  /** Operation → whether an event reported its change. */
  const announced = new Map<ProbeName, boolean>()
  const eventsSoFar = () => session?.events.length ?? 0
  return { trials, touched, lost, tryAll }

  async function tryAll(before: AppRecord): Promise<void> {
    trials.set('events', notTried(session?.isOpen() ? 'nothing has changed' : 'the realtime channel is not open'))
    await trySetting()
    await tryAutoupdate(before)
    await tryChannel(before)
    await tryRestartAndDisable(before)
    await tryReportAndSpeech()
    await tryDowngrade(before)
  }

  async function trySetting(): Promise<void> {
    const set = await keep('setAppSetting', { value: VALUE }, 'setting')
    if (!isOk(set)) {
      trials.set('setting-kept', failed(set))
      return skip('the setting could not be set', ['readBack', 'unsetAppSetting', 'unsetAgain'], 'setting-gone')
    }
    const back = await keep('readBack')
    const isStored = isDeepStrictEqual(back.value, VALUE)
    judge('setting-kept', back, isStored, isStored ? 'it does' : 'another value')
    const unset = await keep('unsetAppSetting', undefined, 'setting')
    if (!isOk(unset)) {
      trials.set('setting-gone', failed(unset))
      return skip('the setting could not be removed', ['unsetAgain'])
    }
    const rest = await send('getAppSettings')
    const isRemoved = isRecord(rest.value) && !Object.hasOwn(rest.value, SETTING)
    judge('setting-gone', rest, isRemoved, isRemoved ? 'it does not' : `${summary(unset)}, but it does`)
    if (isRemoved) await keep('unsetAgain')
    else skip('the setting may not be removed', ['unsetAgain'])
  }

  async function tryAutoupdate({ autoupdate }: AppRecord): Promise<void> {
    if (typeof autoupdate !== 'boolean') return skip('the record has no autoupdate', ['updateApp'], 'autoupdate')
    const flip = { name: 'updateApp', body: { autoupdate: !autoupdate }, touches: 'autoupdate' } as const
    await change('autoupdate', flip, (record) => record['autoupdate'] === !autoupdate, SHOW_MS)
    await send('updateApp', { autoupdate }, 'autoupdate')
  }

  async function tryChannel({ channel }: AppRecord): Promise<void> {
    if (typeof channel !== 'string') return skip('the app has no channel', [], 'channel-ignored')
    const response = await send('updateApp', { channel: NO_CHANNEL }, 'channel')
    if (outcomeOf(response) === 'rejected') return void trials.set('channel-ignored', verdict(true, summary(response)))
    const seen = isOk(response) ? await send('getApp') : response
    const isAccepted = recordOf(seen)?.['channel'] === NO_CHANNEL
    judge('channel-ignored', seen, !isAccepted, isAccepted ? 'it accepts any channel' : 'it does')
  }

  /** Tries to restart, disable and enable the app. A disabled app must be enabled before it can be stopped. */
  async function tryRestartAndDisable(before: AppRecord): Promise<void> {
    const wasEnabled = before['enabled'] !== false
    await keep('garbageCollectApp')
    if (!wasEnabled && !(await enable(before)))
      return skip('the app is disabled', ['restartApp', 'disableApp'], 'disable')
    const from = eventsSoFar()
    if (isOk(await keep('restartApp', undefined, 'state'))) {
      await becomes((record) => runs(record) === true, START_MS)
      await listen('restartApp', from)
    }
    const isOff = (record: AppRecord) => record['enabled'] !== true && reportsState(record) && runs(record) === false
    await change('disable', { name: 'disableApp', touches: 'enabled' }, isOff, START_MS)
    if (wasEnabled) await enable(before)
  }

  async function enable(before: AppRecord): Promise<boolean> {
    const isOn = (record: AppRecord) => record['enabled'] !== false && runs(record) === true
    const now = recordOf(await send('getApp'))
    if (now !== undefined && isOn(now)) {
      skip('the app never stopped', [], 'enable')
      return isOk(await keep('enableApp', undefined, 'enabled'))
    }
    const response = await change('enable', { name: 'enableApp', touches: 'enabled' }, isOn, START_MS)
    const isExcused = before['enabled'] !== false && runs(before) !== true
    if (isExcused && trials.get('enable')?.result === 'differs')
      trials.set('enable', unknown('it did not run before the trials'))
    return isOk(response)
  }

  /** Tries the operations that people notice: a report to the app's developer, and speech. */
  async function tryReportAndSpeech(): Promise<void> {
    const bare = await keep('getAppStd', {})
    const isRejected = outcomeOf(bare) === 'rejected'
    const seen = isRejected ? await keep('getAppStd', { message: '' }) : bare
    judge('std-message', seen, !isRejected, isRejected ? 'it needs one' : 'it needs none')
    const response = await keep('speak', { text: 'hub2mqtt' })
    if (outcomeOf(response) === 'absent') await keep('speakReference', { text: 'hub2mqtt' })
    else skip(`speech-output/say: ${summary(response)}`, ['speakReference'])
  }

  /** Tries to install a lower version. The restoration then installs the newest version. */
  async function tryDowngrade({ version, channel, origin, updateAvailable }: AppRecord): Promise<void> {
    if (typeof version !== 'string' || !(compareVersions(wanted, version) < 0))
      return skip('the version of the app is not higher', ['installFromAppStore'], 'downgrade')
    if (typeof origin === 'string' && origin.startsWith('devkit'))
      return skip('the app is not from the store', ['installFromAppStore'], 'downgrade')
    // Some hubs install the newest version instead of the requested one, which cannot be undone.
    if (updateAvailable !== undefined && updateAvailable !== null && updateAvailable !== false)
      return skip('an update is available and might be installed', ['installFromAppStore'], 'downgrade')
    const install = { id: app, ...(typeof channel === 'string' && { channel }), version: wanted }
    const response = await keep('installFromAppStore', install, 'version')
    const isLowered = isOk(response) && (await becomes((record) => record['version'] === wanted, INSTALL_MS)).isSo
    const isRefused = ['absent', 'rejected', 'failed'].includes(outcomeOf(response))
    if (isRefused) trials.set('downgrade', verdict(true, `refused: ${summary(response)}`))
    else judge('downgrade', response, !isLowered, isLowered ? 'downgraded' : 'it does not')
  }

  /** Sends a write and checks its effect. If the write worked, checks whether an event follows. */
  async function change(
    trial: Trial,
    { name, body, touches }: { readonly name: ProbeName; readonly body?: unknown; readonly touches: Item },
    wanted: (record: AppRecord) => boolean,
    ms: number,
  ): Promise<Observation> {
    const from = eventsSoFar()
    const response = await keep(name, body, touches)
    if (!isOk(response)) {
      trials.set(trial, failed(response))
      return response
    }
    const { isSo, seen } = await becomes(wanted, ms)
    if (isSo || !isOk(seen)) judge(trial, seen, true, 'it does')
    else trials.set(trial, unchanged(trial, response, isRecord(seen.value) ? seen.value : {}))
    if (isSo) await listen(name, from)
    return response
  }

  function judge(trial: Trial, seen: Observation, agrees: boolean, found: string): void {
    trials.set(trial, isOk(seen) ? verdict(agrees, found) : failed(seen))
  }

  function skip(because: string, names: readonly (ProbeName | Extra)[], trial?: Trial): void {
    for (const name of names) reading.untried.set(name, because)
    if (trial !== undefined) trials.set(trial, notTried(because))
  }

  async function send(name: ProbeName | Variant, body?: unknown, touches?: Item): Promise<Observation> {
    signal.throwIfAborted()
    const operation = name === 'readBack' ? 'getAppSetting' : name === 'unsetAgain' ? 'unsetAppSetting' : name
    const seen = await operate(client, reading.prefix, operation, { app, setting: SETTING, body })
    const outcome = outcomeOf(seen)
    // Remember only items that may have changed. A request that was refused, or not sent, has changed nothing.
    const isSent = ['ok', 'failed', 'no_answer'].includes(outcome) && seen.failure !== 'unreachable'
    if (touches !== undefined && isSent) touched.add(touches)
    if (touches !== undefined && isSent && outcome === 'no_answer') lost.add(touches)
    return seen
  }

  async function keep(name: ProbeName | Variant, body?: unknown, touches?: Item): Promise<Observation> {
    const seen = await send(name, body, touches)
    reading.answers.set(name, seen)
    return seen
  }

  /** Waits for an event about a change, and records whether it arrived. Records nothing if the channel is lost. */
  async function listen(name: ProbeName, from: number): Promise<void> {
    if (!session?.isOpen()) return
    const isOurs = ({ name: event, payload }: HubEvent) => event === 'app.update' && payload['id'] === app
    const isReceived = await session.receives(from, isOurs, EVENT_MS)
    if (!isReceived && !session.isOpen()) return
    announced.set(name, isReceived || announced.get(name) === true)
    const after = (isReceived: boolean) =>
      [...announced].flatMap(([one, was]) => (was === isReceived ? [one] : [])).join(', ')
    const [heard, missed] = [after(true), after(false)]
    const found = [heard && `after ${heard}`, missed && `not after ${missed}`].filter(Boolean).join('; ')
    // A quick restart may change nothing in the record.
    trials.set('events', missed === 'restartApp' ? unknown(found) : verdict(missed === '', found))
  }

  async function becomes(wanted: (record: AppRecord) => boolean, ms: number) {
    const started = clock.elapsed()
    for (let pauses = 0; ; pauses += CHECK_MS) {
      const seen = await send('getApp')
      const record = recordOf(seen)
      const isSo = record !== undefined && wanted(record)
      if (isSo || Math.max(pauses, clock.elapsed() - started) >= ms) return { isSo, seen }
      await sleep(clock, CHECK_MS, signal)
    }
  }
}

const reportsState = ({ state, ready }: AppRecord): boolean => typeof state === 'string' || typeof ready === 'boolean'

function unchanged(trial: Trial, response: Observation, record: AppRecord): Verdict {
  if (record['crashed'] === true || record['state'] === 'crashed') return unknown('it crashed')
  if (trial !== 'autoupdate' && !reportsState(record)) return unknown('the record has neither state nor ready')
  const shown = trial === 'autoupdate' ? ['autoupdate'] : ['enabled', 'state', 'ready']
  const found = shown.filter((key) => key in record).map((key) => `${key} ${shownValue(record[key])}`)
  return verdict(false, `${summary(response)}, but ${found.join(', ') || 'the record does not show it'}`)
}

/** The states that a report may contain. Any other text may be a name. */
const STATES: ReadonlySet<unknown> = new Set(['stopped', 'stopping', 'starting', 'running', 'crashed'])

function shownValue(value: unknown): string {
  return typeof value === 'boolean' || STATES.has(value) ? String(value) : 'something else'
}
