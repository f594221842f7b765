/** `hub2mqtt conformance`: what a hub answers, and how that differs from what is expected of one. */
import { type Clock, sleep } from '../base/clock.ts'
import type { LimitSeen } from './evidence.ts'
import { greetings, PROBES, pathTo, prefixOf, type Reading, read } from './probes.ts'
import { Session, type SessionOptions, speaks } from './realtime.ts'
import { type Report, reportOf, unreachableReport } from './report.ts'
import { Asker } from './seen.ts'
import { write } from './writes.ts'

/** More would be a nuisance to a hub, and show nothing else. */
const QUICK = 6
/** What went before must not count, nor what follows. */
const CALM_MS = 2_000

export interface ConformanceOptions {
  readonly url: string
  readonly key: string
  /** Deadline of each request and step, in milliseconds. */
  readonly timeoutMs: number
  /** The app to ask about; by default one that runs. */
  readonly app?: string | undefined
  /** Whether that app may be changed. */
  readonly writes: boolean
  /** A lower version of that app to install; by default 1.0.0. */
  readonly downgrade?: string | undefined
  /** Whether six requests may be sent at once. */
  readonly limits: boolean
  readonly version: string
  readonly clock: Clock
  /** Told what is about to be looked at. */
  readonly onStep?: (step: string) => void
}

/** Examines a hub. It never fails for what a hub does: that is the report. */
export async function examine(options: ConformanceOptions): Promise<Report> {
  const { url, key, timeoutMs, clock, onStep = () => {} } = options
  await using asker = new Asker({ url, key, timeoutMs, clock })
  onStep('looking for a hub')
  const pings = await greetings(asker)
  const prefix = prefixOf(pings)
  // Nobody else is shown the key.
  if (prefix === undefined) return unreachableReport(options, pings)
  asker.trust(pathTo(prefix, PROBES.ping), pings[prefix].id)
  onStep('asking what changes nothing')
  const reading = await read(asker, pings, prefix, options.app)
  onStep('opening the realtime channel')
  const { evidence, session } = await examineRealtime(options, asker, reading)
  try {
    if (options.limits) onStep('sending requests quickly')
    const limit = options.limits ? await hurry(options, asker, reading) : null
    const app = options.writes ? options.app : undefined
    if (app !== undefined) onStep('changing the app, and putting it back')
    const isThere = reading.answers.get('getApp')?.status === 200
    const { downgrade } = options
    const writes = app !== undefined && isThere ? await write({ asker, reading, app, downgrade, session, clock }) : null
    return reportOf(options, { ...evidence, reading, limit, writes, port: portOf(url) })
  } finally {
    session?.close()
  }
}

async function examineRealtime({ url, key, timeoutMs, clock }: ConformanceOptions, asker: Asker, reading: Reading) {
  const protocols = { 3: await speaks(3, url, timeoutMs), 4: await speaks(4, url, timeoutMs) }
  const hubId = reading.pings[reading.prefix].id
  const prove = async () => (await asker.prove()) === undefined
  const base: Omit<SessionOptions, 'withToken'> = { url, key, hubId, prove, timeoutMs, clock }
  const without = new Session({ ...base, withToken: false })
  await without.run()
  const isOpen = without.seen.open === 'ok'
  if (isOpen || !without.seen.tokenOffered) {
    if (!isOpen) without.close()
    const evidence = { session: without.seen, sessionWithToken: null, protocols }
    return { evidence, session: isOpen ? without : undefined }
  }
  without.close()
  const withToken = new Session({ ...base, withToken: true })
  await withToken.run()
  const evidence = { session: without.seen, sessionWithToken: withToken.seen, protocols }
  return { evidence, session: withToken }
}

/** As many requests at once as a hub may mind, and no more. */
async function hurry({ clock }: ConformanceOptions, asker: Asker, { prefix }: Reading): Promise<LimitSeen> {
  const path = pathTo(prefix, PROBES.getSessionMe)
  await sleep(clock, CALM_MS)
  const answers = await Promise.all(Array.from({ length: QUICK }, () => asker.askNow('GET', path)))
  await sleep(clock, CALM_MS)
  const limited = answers.filter(({ status }) => status === 429)
  const header = limited.find((seen) => seen.retryAfter !== null)?.retryAfter ?? null
  const retryAfter = header === null || /^\d{1,9}$/.test(header) ? header : 'date'
  return { sent: QUICK, limitedAfter: limited.length === 0 ? null : QUICK - limited.length, retryAfter }
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url)
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
}
