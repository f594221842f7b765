import * as v from 'valibot'
import { type Clock, sleep, systemClock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import { readPlainText } from '../../base/read-plain.ts'
import { apiKey } from '../../config/addresses.ts'
import { readFailure } from '../../config/file.ts'
import { API_PREFIXES } from '../../hub/proven-hub.ts'
import { shownJson, shownText } from '../../observability/controls.ts'
import { Scrubber } from '../../observability/scrub.ts'
import { type Body, exitCodes, type Values } from '../command.ts'
import type { conformanceFlags } from '../commands.ts'
import { waiting } from '../progress.ts'
import { endSignal } from '../signals.ts'
import { type Client, newClient, recordOf } from './observation.ts'
import { greetings, operate, PROBES, pathTo, type Reading, read, whyNoApp } from './probes.ts'
import { openSession, type Session, type Step, speaks } from './realtime.ts'
import { type Report, reportOf, reportText, unreachableReport } from './report.ts'
import { write } from './writes.ts'

type Flags = Values<typeof conformanceFlags>

export const conformance: Body<Flags> = async ({ env, print, warn }, flags) => {
  const { url, app, writes, downgrade, limits, timeout: timeoutMs } = flags
  if (url === undefined)
    throw new UsageError('--url is missing: expected the address of the hub, such as --url http://192.168.1.20')
  if (writes && app === undefined) throw new UsageError('--writes needs --app with the app that may be changed')
  if (downgrade !== undefined && !writes) throw new UsageError('--downgrade needs --writes')
  const key = keyOf(flags, env['HUB2MQTT_HUB_API_KEY'])
  let stop = () => {}
  const report = await examine({
    ...{ url, key, app, writes, downgrade, limits, timeoutMs, clock: systemClock },
    onStep(step) {
      stop()
      stop = waiting(step)
    },
    stops() {
      const signal = endSignal()
      signal.addEventListener('abort', () => warn('hub2mqtt: stopping; restoring the app first'))
      return signal
    },
  }).finally(() => stop())
  const scrubber = new Scrubber([key])
  const text = () => scrubber.text(reportText(report)).split('\n').map(shownText).join('\n').trimEnd()
  print(flags.json ? shownJson(scrubber.payload(JSON.stringify(report))) : text())
  return report.problems.length === 0 ? exitCodes.ok.code : exitCodes.failed.code
}

function keyOf({ key, 'key-file': file }: Flags, variable: string | undefined): string {
  if (key !== undefined && file !== undefined) throw new UsageError('--key and --key-file: expected only one of them')
  const found = key ?? (file === undefined ? variable : contentOf(file))
  if (found === undefined) throw new UsageError('expected the API key: --key-file, --key or HUB2MQTT_HUB_API_KEY')
  const result = v.safeParse(apiKey, found)
  if (!result.success) throw new UsageError(`the API key: ${result.issues[0].message}`)
  return result.output
}

function contentOf(path: string): string {
  try {
    return readPlainText(path).trim()
  } catch (error) {
    throw new UsageError(`--key-file: ${readFailure(error)}`)
  }
}

/** Number of simultaneous requests that test the rate limit. More would load the hub and show nothing new. */
const QUICK = 6
/** Pause before and after the test of the rate limit, so that other requests do not count towards the limit. */
const CALM_MS = 2_000

export interface ConformanceOptions
  extends Pick<Flags, 'writes' | 'limits'>,
    Partial<Pick<Flags, 'app' | 'downgrade'>> {
  readonly url: string
  readonly key: string
  /** The time limit for each request and step. */
  readonly timeoutMs: number
  readonly clock: Clock
  readonly onStep?: (step: string) => void
  /** Called before the app is changed. The returned signal stops the examination, which still restores the app. */
  readonly stops?: () => AbortSignal
}

/** Examines a hub. Does not throw if the hub behaves unexpectedly, because the report describes its behaviour. */
export async function examine(options: ConformanceOptions): Promise<Report> {
  const { url, key, timeoutMs, clock, onStep = () => {}, stops = () => new AbortController().signal } = options
  await using client = newClient({ url, key, timeoutMs, clock })
  onStep('searching for a hub')
  const pings = await greetings(client)
  const prefix = API_PREFIXES.find((one) => pings[one].greets)
  // If no hub answers at either path, stop here, because only a hub may receive the key.
  if (prefix === undefined) return unreachableReport(pings)
  client.trust(pathTo(prefix, PROBES.ping), pings[prefix].id)
  onStep('reading')
  const reading = await read(client, pings, prefix, options.app)
  onStep('opening the realtime channel')
  const { evidence, session } = await examineRealtime(options, client, reading)
  const change = async () => {
    onStep('changing the app')
    const { app = '', downgrade } = options
    const onRestore = () => onStep('restoring the app')
    return await write({ client, reading, app, downgrade, session, clock, signal: stops(), onRestore })
  }
  try {
    if (options.limits) onStep('sending requests quickly')
    const limit = options.limits ? await testRateLimit(options, client, reading) : null
    const writes = options.writes && recordOf(reading.answers.get('getApp')) ? await change() : null
    if (options.writes && writes === null) reading.noWrites = `the app ${whyNoApp(reading)}`
    const noLimit = options.limits ? 'the hub did not answer all requests' : 'without --limits'
    return reportOf(options.writes, { ...evidence, reading, limit, noLimit, writes, port: Number(new URL(url).port) })
  } finally {
    session?.close()
  }
}

async function examineRealtime({ url, key, timeoutMs, clock }: ConformanceOptions, client: Client, reading: Reading) {
  /** Resolves to whether the hub accepts this version of Engine.IO, or to `null` if the hub is offline. */
  const supports = async (version: 3 | 4) => {
    if (await speaks(version, url, timeoutMs)) return true
    const ping = await operate(client, reading.prefix, 'ping', { show: 'no key' })
    return ping.greets ? await speaks(version, url, timeoutMs) : null
  }
  const protocols = { 3: await supports(3), 4: await supports(4) }
  const hubId = reading.pings[reading.prefix].id
  const prove = async () => (await client.prove()) === undefined
  const session = (withToken: boolean) =>
    opened(() => openSession({ url, key, timeoutMs, clock }, hubId, prove, withToken))
  const without = await session(false)
  const isUp = without.seen.open === 'ok'
  if (!isUp) without.close()
  const withToken = !isUp && without.seen.tokenOffered ? await session(true) : undefined
  const evidence = { session: without.seen, sessionWithToken: withToken?.seen ?? null, protocols }
  return { evidence, session: isUp ? without : withToken }
}

const LOST: ReadonlySet<Step> = new Set(['dropped', 'silent'])

/** Opens a session. Tries again once if the connection is lost, because the hub may have been offline for a moment. */
async function opened(open: () => Promise<Session>): Promise<Session> {
  const first = await open()
  const { connect, handshake, open: opening, subscribe } = first.seen
  if (![connect, handshake, opening, subscribe].some((step) => LOST.has(step))) return first
  first.close()
  return await open()
}

/** Sends enough simultaneous requests to exceed a hub's rate limit. Resolves to `null` if a request gets no answer. */
export async function testRateLimit({ clock }: ConformanceOptions, client: Client, { prefix }: Reading) {
  const path = pathTo(prefix, PROBES.getSessionMe)
  await sleep(clock, CALM_MS)
  const answers = await Promise.all(Array.from({ length: QUICK }, () => client.requestOnce('GET', path)))
  await sleep(clock, CALM_MS)
  if (answers.some(({ status }) => status === null)) return null
  const limited = answers.filter(({ status }) => status === 429)
  const header = limited.find((seen) => seen.retryAfter !== null)?.retryAfter ?? null
  const retryAfter = header === null || /^\d{1,9}$/.test(header) ? header : 'date'
  return {
    sent: QUICK,
    /** Number of requests that were not answered with 429; `null` if no request was answered with 429. */
    limitedAfter: limited.length === 0 ? null : QUICK - limited.length,
    retryAfter,
  }
}
