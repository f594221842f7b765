/** Examines one configured hub: who answers, what the key permits, and whether events come. */
import { camelKeys } from '../base/camel-keys.ts'
import type { Clock } from '../base/clock.ts'
import { untilTaken } from '../bridge/patience.ts'
import { lackingRights } from '../bridge/story.ts'
import type { Config, HubConfig } from '../config/options.ts'
import { HubClient } from '../hub/client.ts'
import { HubError } from '../hub/errors.ts'
import { explain } from '../hub/explain.ts'
import { type Greeting, greet } from '../hub/greeting.ts'
import { OPERATIONS, type OperationName } from '../hub/operations.ts'
import { openRealtime } from '../hub/realtime.ts'
import { grants } from '../hub/scopes.ts'
import { Scrubber } from '../log/scrub.ts'
import { about, type Finding } from './finding.ts'

/** The time of day decides when a command has expired. */
const MAX_CLOCK_DIFFERENCE_MS = 30_000
/** A hub that accepts a session and drops it at once has none. */
const SETTLE_MS = 500

export interface HubExamination {
  readonly name: string
  readonly hub: HubConfig
  readonly config: Pick<Config, 'commands' | 'settings'>
  readonly clock: Clock
}

export async function* examineHub({ name, hub, config, clock }: HubExamination): AsyncGenerator<Finding> {
  const { ok, note, problem } = about(`hub ${name}`)
  const { url, timeout: timeoutMs } = hub
  const apiKey = () => hub.api_key
  const clean = (text: string) => new Scrubber([hub.api_key]).text(text)
  const client = new HubClient({ ...camelKeys(hub), timeoutMs, apiKey, knows: () => true, clean }, clock)
  const failed = (error: unknown, what = ''): Finding => {
    if (!(error instanceof HubError)) throw error
    const { cause, remedy } = explain(error, url)
    return problem(what + cause, remedy)
  }
  /** Asks again for what the hub puts off. */
  const patiently = <T>(ask: () => Promise<T>) => {
    const deadline = clock.elapsed() + timeoutMs
    return untilTaken(ask, { clock, deadline, signal: new AbortController().signal, check: () => {} })
  }
  try {
    const identity = await patiently(() => client.identify())
    yield ok(`a hub answers at ${url}, firmware ${identity.firmware ?? 'not told'}`)
    yield* examineClock(name, url, clock)
    const greeting = await patiently(() => greet(client, undefined))
    const { scopes } = greeting
    if (scopes === undefined) yield note('the API key is accepted; the hub does not tell what it permits')
    else yield ok(`the API key is accepted, with ${scopes.join(', ') || 'no permissions'}`)
    const permits = permissionsOf(greeting)
    for (const line of lackingRights({ permits }, config.commands)) {
      yield note(line, 'add the permission to the key if you want them')
    }
    if (config.settings.publish.size > 0 && permits('getAppSettings') !== 'yes') {
      yield problem(
        `settings.publish names settings, and the API key lacks ${OPERATIONS.getAppSettings.scope}`,
        'add the permission to the key',
      )
    }
    const apps = await patiently(() => client.call('getApps', {}))
    yield ok(`${apps.size} apps`)
    if (!hub.realtime) return yield note(`no realtime channel, as configured: the list is read every so often`)
    try {
      const { id: hubId } = greeting
      const signal = new AbortController().signal
      const prove = () => client.assure()
      const options = { url, apiKey: hub.api_key, hubId, prove, timeoutMs, settleMs: SETTLE_MS, clock, signal }
      const session = await openRealtime({ ...options, onEvent: () => {} })
      session.close()
      yield ok('the realtime channel is up: changes come at once')
    } catch (error) {
      if (!(error instanceof HubError)) throw error
      yield problem(
        `no realtime channel, so changes are seen only when the list is read: ${error.message.replace(/\.$/, '')}`,
        'the key may need homey.system.readonly; a proxy in between must pass WebSockets on',
      )
    }
  } catch (error) {
    yield failed(error)
  } finally {
    await client.close()
  }
}

function permissionsOf({ missing, scopes }: Greeting) {
  return (operation: OperationName) => {
    if (missing.has(operation)) return 'unsupported'
    return grants(scopes, OPERATIONS[operation].scope) ? 'yes' : 'forbidden'
  }
}

/** Compares this machine's time of day with the hub's, which its answers tell. */
async function* examineClock(name: string, url: string, clock: Clock): AsyncGenerator<Finding> {
  const { problem } = about(`hub ${name}`)
  const date = await fetch(url, { method: 'HEAD', redirect: 'manual', signal: AbortSignal.timeout(2_000) })
    .then(({ headers }) => headers.get('date'))
    .catch(() => null)
  const told = date === null ? Number.NaN : Date.parse(date)
  const seconds = Math.round(Math.abs(clock.now() - told) / 1000)
  if (seconds * 1000 <= MAX_CLOCK_DIFFERENCE_MS || Number.isNaN(seconds)) return
  yield problem(
    `the clocks of this machine and of the hub differ by ${seconds} s: commands with expires_at may expire early or late`,
    'let both get their time from the network (NTP)',
  )
}
