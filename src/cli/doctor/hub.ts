import { Pool } from 'undici'
import type { Clock } from '../../base/clock.ts'
import { type Advice, advice } from '../../base/failures.ts'
import { helpfulRights, lackingRights } from '../../bridge/activity-log.ts'
import type { Config, HubConfig } from '../../config/options.ts'
import { camelKeys } from '../../config/table.ts'
import { HubClient, retryRateLimited } from '../../hub/client.ts'
import { HubError } from '../../hub/errors.ts'
import { explain, HUB_PORTS, mayBeOtherServer } from '../../hub/explain.ts'
import { type Greeting, greet } from '../../hub/greeting.ts'
import { OPERATIONS, type OperationName } from '../../hub/operations.ts'
import type { Identity } from '../../hub/proven-hub.ts'
import { openRealtime } from '../../hub/realtime.ts'
import { grants } from '../../hub/status.ts'
import { Scrubber } from '../../observability/scrub.ts'
import { about, type Finding } from './finding.ts'
import { protocolAt } from './spoken.ts'

const KEEP_NAME = 'keep the name: with another name, Home Assistant replaces all devices with new ones'

/** Maximum difference between the clocks of hub and bridge. The expiry of commands depends on both clocks. */
const MAX_CLOCK_DIFFERENCE_MS = 30_000
/** How long to watch a new session. A hub may accept a session and immediately close it. */
const SETTLE_MS = 500

interface HubExamination {
  readonly name: string
  readonly hub: HubConfig
  readonly config: Pick<Config, 'commands' | 'settings'>
  readonly clock: Clock
}

/** Examines a hub. The final value is the hub's id, or `null` if the hub does not identify itself. */
export async function* examineHub(examination: HubExamination): AsyncGenerator<Finding, string | null> {
  const { name, hub, config, clock } = examination
  const { ok, note, problem } = about(`hub ${name}`)
  const { url, timeout: timeoutMs } = hub
  const client = clientFor(hub, hub.path_prefix, clock)
  let identity: Identity | undefined
  const retried = <T>(call: () => Promise<T>) => {
    const deadline = clock.elapsed() + timeoutMs
    return retryRateLimited(call, { clock, deadline, signal: new AbortController().signal, check: () => {} })
  }
  try {
    identity = await retried(() => client.hub.identify())
    yield ok(`a hub answers at ${url}, firmware ${identity.firmware ?? 'not reported'}`)
    if (identity.id === null) yield note(`the hub has no id: Home Assistant knows it as ${name}`, KEEP_NAME)
    yield* examineClock(name, url, clock)
    const { greeting } = await retried(() => greet(client, () => undefined))
    const { scopes } = greeting
    if (scopes === undefined) yield note('the API key is accepted; the hub does not report its permissions')
    else yield ok(`the API key is accepted, with ${scopes.join(', ') || 'no permissions'}`)
    const permits = permissionsOf(greeting)
    const apps = await retried(() => client.call('getApps', {}))
    yield ok(`${apps.size} apps`)
    for (const line of helpfulRights({ permits })) yield ok(line)
    for (const line of lackingRights({ permits }, config.commands)) {
      yield note(line, 'add the permission to the key if you need it')
    }
    if (config.settings.publish.size > 0 && permits('getAppSettings') !== 'yes') {
      const text = `settings.publish names settings, but the API key lacks ${OPERATIONS.getAppSettings.scope}`
      yield problem(text, 'add the permission to the key')
    }
    if (!hub.realtime) {
      yield note('no realtime channel, as configured: the list is polled')
      return identity.id
    }
    try {
      const { id: hubId } = greeting
      const signal = new AbortController().signal
      const prove = () => client.hub.ensure()
      const options = { url, apiKey: hub.api_key, hubId, prove, timeoutMs, settleMs: SETTLE_MS, clock, signal }
      const session = await openRealtime({ ...options, apps: { receive: () => {} } })
      session.close()
      yield ok('the realtime channel works: changes arrive immediately')
    } catch (error) {
      if (!(error instanceof HubError)) throw error
      yield problem(
        `no realtime channel, so changes are noticed only when the list is polled: ${error.message.replace(/\.$/, '')}`,
        'the key may need homey.system.readonly; a proxy in between must forward WebSockets; for a hub without this channel, set realtime: false',
      )
    }
  } catch (error) {
    if (!(error instanceof HubError)) throw error
    const found = (identity === undefined && (await elsewhere(error, examination))) || explain(error, url)
    yield problem(found.cause, found.remedy, found.names)
  } finally {
    await client.close()
  }
  return identity?.id ?? null
}

function clientFor(hub: HubConfig, pathPrefix: HubConfig['path_prefix'], clock: Clock): HubClient {
  const clean = (text: string) => new Scrubber([hub.api_key]).text(text)
  const apiKey = () => hub.api_key
  return new HubClient(
    { ...camelKeys(hub), timeoutMs: hub.timeout, pathPrefix, apiKey, hasApp: () => true, clean },
    clock,
  )
}

/** Finds out what answers instead of the configured hub, without sending the key. */
async function elsewhere(error: HubError, { hub, clock }: HubExamination): Promise<Advice | undefined> {
  const { host, protocol } = new URL(hub.url)
  if (hub.path_prefix !== 'auto' && (error.code === 'unsupported' || error.code === 'nonsense')) {
    const client = clientFor(hub, 'auto', clock)
    const found = await client.hub.identify().catch(() => undefined)
    await client.close()
    if (found === undefined || found.api === hub.path_prefix) return undefined
    const cause = `the hub answers at /api/${found.api}, not at /api/${hub.path_prefix}`
    return { cause, remedy: 'remove path_prefix, or set path_prefix: auto' }
  }
  if (!mayBeOtherServer(error)) return undefined
  const detected = await protocolAt(hub.url)
  if (detected === 'MQTT') {
    return advice(`${host} is an MQTT broker, not a hub`, HUB_PORTS)
  }
  if (detected !== 'TLS' || protocol !== 'http:') return undefined
  return { cause: `${host} speaks TLS`, remedy: `use https://, or the hub's port for HTTP` }
}

function permissionsOf({ missing, scopes }: Greeting) {
  return (operation: OperationName) => {
    if (missing.has(operation)) return 'unsupported'
    return grants(scopes, OPERATIONS[operation].scope) ? 'yes' : 'forbidden'
  }
}

async function* examineClock(name: string, url: string, clock: Clock): AsyncGenerator<Finding> {
  const { problem } = about(`hub ${name}`)
  const theirs = await timeOf(url).catch(() => Number.NaN)
  const seconds = Math.round(Math.abs(clock.now() - theirs) / 1000)
  if (seconds * 1000 <= MAX_CLOCK_DIFFERENCE_MS || Number.isNaN(seconds)) return
  yield problem(
    `the clocks of this machine and of the hub differ by ${seconds} s: commands with expires_at may expire early or late`,
    'synchronise both clocks with NTP',
  )
}

/** Reads a server's clock. Uses undici, which is already loaded. Node's own `fetch` would load a second copy of it. */
async function timeOf(url: string): Promise<number> {
  const { origin, pathname } = new URL(url)
  const pool = new Pool(origin, { connections: 1, allowH2: false })
  try {
    const { headers } = await pool.request({ method: 'HEAD', path: pathname, signal: AbortSignal.timeout(2_000) })
    return Date.parse(String(headers['date']))
  } finally {
    await pool.destroy()
  }
}
