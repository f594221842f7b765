/** The two kinds of records of a fleet: the list of its members, and each member's own state. */
import * as v from 'valibot'
import { MEMBER_NAME } from '../base/member-name.ts'
import { readJson } from '../base/read-json.ts'

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0))
/** With a change every millisecond, this epoch is reached after 34 years. Much higher numbers would not be exact. */
export const MAX_EPOCH = 2 ** 40
const epoch = v.pipe(count, v.maxValue(MAX_EPOCH))
const mark = v.pipe(v.string(), v.minLength(1), v.maxLength(64))

const LISTED = v.object({
  nonce: mark,
  /** When the membership began, in ISO 8601 format. */
  since: v.pipe(v.string(), v.maxLength(40), v.isoTimestamp()),
  /** Revision of the member's row with this nonce. A later row with a new nonce proves that the lease has ended. */
  revision: count,
})
export type Listed = v.InferOutput<typeof LISTED>

const ROSTER = v.object({
  /** Increases whenever `members` changes. */
  epoch,
  /** No member serves hubs until this is `true`, because members of a lost roster may still be serving hubs. */
  settled: v.boolean(),
  members: v.record(v.pipe(v.string(), v.regex(MEMBER_NAME)), LISTED),
})
export type Roster = v.InferOutput<typeof ROSTER>

const ALIVE = v.object({
  nonce: mark,
  /** The latest epoch for which the member has stopped serving the hubs that belong to other members. */
  adopted: epoch,
})
/** The record of a member that leaves, or of a member whose lease is known to have ended. It has no nonce. */
const GONE = v.pipe(
  v.object({ gone: mark }),
  v.transform(() => ({ nonce: undefined, adopted: 0 })),
)
const MEMBER = v.union([ALIVE, GONE])
export type MemberRecord = v.InferOutput<typeof MEMBER>

export const ROSTER_KEY = 'roster'
const MEMBER_PREFIX = 'member.'
export const memberKey = (name: string) => `${MEMBER_PREFIX}${name}`

/** Returns the member to which a key belongs; `undefined` for any other key. */
export function memberOf(key: string): string | undefined {
  const name = key.startsWith(MEMBER_PREFIX) ? key.slice(MEMBER_PREFIX.length) : ''
  return MEMBER_NAME.test(name) ? name : undefined
}

export const readRoster = (text: string): Roster | undefined => readJson(ROSTER, text)
export const readMember = (text: string): MemberRecord | undefined => readJson(MEMBER, text)
