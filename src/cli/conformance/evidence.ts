/** The evidence of an examination, the kind of hub, and helpers for verdicts on expectations. */
import { isRecord } from '../../base/json.ts'
import type { hurry } from './conformance.ts'
import { isAway, isOk, type Observation, outcomeOf, summary } from './observation.ts'
import type { Reading } from './probes.ts'
import type { SessionSeen } from './realtime.ts'
import type { WritesSeen } from './writes.ts'

export interface Evidence {
  /** Port of the address; 0: the default port. */
  readonly port: number
  readonly reading: Reading
  readonly session: SessionSeen
  /** A session with the handshake's token, if the handshake returned one. */
  readonly sessionWithToken: SessionSeen | null
  /** Whether versions 3 and 4 of the protocol below Socket.IO are accepted; `null`: no connection. */
  readonly protocols: { readonly 3: boolean | null; readonly 4: boolean | null }
  readonly limit: Awaited<ReturnType<typeof hurry>>
  /** Why `limit` is `null`. */
  readonly noLimit: string
  readonly writes: WritesSeen | null
}

export type Kind = 'reference' | 'older' | 'newer' | 'self-hosted' | 'unknown'

/** Ports of a Self-Hosted Server, for HTTP and HTTPS. */
const SELF_HOSTED_PORTS: ReadonlySet<number> = new Set([4859, 4860])

export function firmwareOf({ pings, prefix }: Reading): string | null {
  const { firmware } = pings[prefix]
  return firmware !== null && /^[\w.+-]{1,40}$/.test(firmware) ? firmware : null
}

/** The kind of hub, and the evidence for it: the firmware or, if it is unknown, other differences. */
export function kindOfHub({ reading, port }: Evidence): { readonly kind: Kind; readonly because: readonly string[] } {
  const { prefix, answers, records } = reading
  if (prefix === 'managers') return { kind: 'reference', because: ['it answers only below /api/managers/'] }
  const firmware = firmwareOf(reading)
  const major = Number.parseInt(firmware ?? '', 10)
  const [voices, absent] = [answers.get('getVoices'), answers.get('absentMethod')]
  const has = (field: string) => records.some((record) => (record[field] ?? undefined) !== undefined)
  // Older hubs report a missing method with a 500.
  const saysAsOlder = [voices, absent].some((seen) => seen?.status === 500 && outcomeOf(seen) === 'absent')
  const signs: readonly (readonly [kind: Kind, text: string, isSeen: boolean])[] = [
    ['newer', 'no speech output', voices?.status === 404],
    ['newer', 'crashedCount in its records', has('crashedCount')],
    ['older', '500 missing_api_method', saysAsOlder],
    ['older', 'speech output', isOk(voices)],
    ['older', 'exitCount in its records', has('exitCount')],
    ['self-hosted', `port ${port}`, SELF_HOSTED_PORTS.has(port)],
    ['self-hosted', 'updateAvailable as a text', records.some((one) => typeof one['updateAvailable'] === 'string')],
  ]
  const signsOf = (kind: Kind) => signs.flatMap(([of, text, isSeen]) => (of === kind && isSeen ? [text] : []))
  const [older, newer, selfHosted] = [signsOf('older'), signsOf('newer'), signsOf('self-hosted')]
  const isKnown = Number.isInteger(major)
  const lead = isKnown ? (major < 10 ? 1 : -1) : Math.sign(older.length - newer.length)
  if (lead === 0) return { kind: 'unknown', because: [] }
  const firmwareSign = isKnown ? [`firmware ${firmware}`] : []
  if (lead > 0) return { kind: 'older', because: [...firmwareSign, ...older] }
  const kind = selfHosted.length === 0 ? 'newer' : 'self-hosted'
  return { kind, because: [...firmwareSign, ...newer, ...selfHosted] }
}

/** Scopes of the key; `null` if the hub does not list them. */
export function scopesOf({ answers }: Reading): readonly string[] | null {
  const seen = answers.get('getSessionMe')
  const value: unknown = seen?.value
  const list = seen?.status === 200 && isRecord(value) ? (value['intersectedScopes'] ?? value['scopes']) : undefined
  if (!Array.isArray(list)) return null
  return list.filter((scope) => typeof scope === 'string' && /^[\w.:-]{1,80}$/.test(scope))
}

export interface Verdict {
  readonly result: 'agrees' | 'differs' | 'unknown'
  /** The finding, without names and values. */
  readonly found: string
}

export const verdict = (agrees: boolean, found: string): Verdict => ({ result: agrees ? 'agrees' : 'differs', found })
export const unknown = (found: string): Verdict => ({ result: 'unknown', found })
export const notTried = (because: string): Verdict => unknown(`not tried: ${because}`)

/** The verdict on an unsuccessful answer: unknown if the hub was offline or refuses the key. */
export function failed(seen: Observation): Verdict {
  if (isAway(seen)) return unknown(summary(seen))
  return outcomeOf(seen) === 'refused' ? unknown(`no permission: ${summary(seen)}`) : verdict(false, summary(seen))
}
