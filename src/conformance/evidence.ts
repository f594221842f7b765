/** Everything that an examination has seen, and what kind of hub that is. */
import { isRecord } from '../base/json.ts'
import type { Reading } from './probes.ts'
import type { SessionSeen } from './realtime.ts'
import { outcomeOf } from './seen.ts'
import type { WritesSeen } from './writes.ts'

/** Quick requests, all at once. */
export interface LimitSeen {
  readonly sent: number
  /** How many were answered before the first 429; `null`: there was none. */
  readonly limitedAfter: number | null
  readonly retryAfter: string | null
}

export interface Evidence {
  /** Port of the address. */
  readonly port: number
  readonly reading: Reading
  readonly session: SessionSeen
  /** The same with the token of the handshake, where there was one. */
  readonly sessionWithToken: SessionSeen | null
  /** Whether the versions 3 and 4 of the protocol below Socket.IO are taken. */
  readonly protocols: { readonly 3: boolean; readonly 4: boolean }
  readonly limit: LimitSeen | null
  readonly writes: WritesSeen | null
}

export const KINDS = ['reference', 'older', 'newer', 'self-hosted', 'unknown'] as const
export type Kind = (typeof KINDS)[number]

/** Of a Self-Hosted Server, HTTP and HTTPS. */
const SELF_HOSTED_PORTS: ReadonlySet<number> = new Set([4859, 4860])

export function firmwareOf({ pings, prefix }: Reading): string | null {
  const { firmware } = pings[prefix]
  return firmware !== null && /^[\w.+-]{1,40}$/.test(firmware) ? firmware : null
}

/** The kind of hub, and what speaks for it. */
export function kindOfHub({ reading, port }: Evidence): { readonly kind: Kind; readonly because: readonly string[] } {
  const { prefix, answers, records } = reading
  if (prefix === 'managers') return { kind: 'reference', because: ['it answers below /api/managers/ alone'] }
  const firmware = firmwareOf(reading)
  const major = Number.parseInt(firmware ?? '', 10)
  const voices = answers.get('getVoices')
  const has = (field: string) => records.some((record) => record[field] !== undefined)
  const signs = {
    newer: [
      ...(major >= 10 ? [`firmware ${firmware}`] : []),
      ...(voices !== undefined && outcomeOf(voices) === 'absent' ? ['no speech output'] : []),
      ...(has('crashedCount') ? ['crashedCount in its records'] : []),
    ],
    older: [
      ...(major < 10 ? [`firmware ${firmware}`] : []),
      ...(voices !== undefined && outcomeOf(voices) === 'ok' ? ['speech output'] : []),
      ...(has('exitCount') ? ['exitCount in its records'] : []),
    ],
    'self-hosted': [
      ...(SELF_HOSTED_PORTS.has(port) ? [`port ${port}`] : []),
      ...(records.some(({ updateAvailable }) => typeof updateAvailable === 'string')
        ? ['updateAvailable as a text']
        : []),
    ],
  }
  if (signs.older.length > signs.newer.length) return { kind: 'older', because: signs.older }
  if (signs.newer.length <= signs.older.length) return { kind: 'unknown', because: [] }
  if (signs['self-hosted'].length === 0) return { kind: 'newer', because: signs.newer }
  return { kind: 'self-hosted', because: [...signs.newer, ...signs['self-hosted']] }
}

/** Scopes of the key, where the hub tells them. */
export function scopesOf({ answers }: Reading): readonly string[] | null {
  const value = answers.get('getSessionMe')?.value
  const list = isRecord(value) ? (value['intersectedScopes'] ?? value['scopes']) : undefined
  if (!Array.isArray(list)) return null
  return list.filter((scope) => typeof scope === 'string' && /^[\w.:-]{1,80}$/.test(scope))
}
