/** The two records of a fleet: who belongs to it, and what each member says of itself. */
import * as v from 'valibot'
import { MEMBER_NAME } from '../base/member-name.ts'
import { readJson } from '../base/read-json.ts'

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0))
/**
 * The highest epoch: members that change each millisecond need 34 years for it. A higher one was written by something else,
 * and counting on from it would end at numbers that are not exact.
 */
export const MAX_EPOCH = 2 ** 40
const epoch = v.pipe(count, v.maxValue(MAX_EPOCH))
const mark = v.pipe(v.string(), v.minLength(1), v.maxLength(64))

/** A member that is part of a fleet's present epoch. */
const LISTED = v.object({
  nonce: mark,
  /** ISO 8601. */
  since: v.pipe(v.string(), v.maxLength(40), v.isoTimestamp()),
  /** Of the row with which it took this nonce: a later row without it says that the nonce is over. */
  revision: count,
})
export type Listed = v.InferOutput<typeof LISTED>

const ROSTER = v.object({
  /** Grows whenever `members` changes. */
  epoch,
  /** No member serves hubs until this is true: a new roster may replace a lost one. */
  settled: v.boolean(),
  members: v.record(v.pipe(v.string(), v.regex(MEMBER_NAME)), LISTED),
})
export type Roster = v.InferOutput<typeof ROSTER>

/** A member's own word. */
const ALIVE = v.object({
  nonce: mark,
  /** It serves nothing that belongs to others in this epoch. */
  adopted: epoch,
})
/** Written in a member's place when its lease is surely over, or by itself when it leaves. */
const GONE = v.object({ gone: mark })
const MEMBER = v.union([ALIVE, GONE])
export type MemberRecord = v.InferOutput<typeof MEMBER>

export const ROSTER_KEY = 'roster'
const MEMBER_PREFIX = 'member.'
export const memberKey = (name: string) => `${MEMBER_PREFIX}${name}`

/** The member of a key; `undefined` for any other key. */
export function memberOf(key: string): string | undefined {
  const name = key.startsWith(MEMBER_PREFIX) ? key.slice(MEMBER_PREFIX.length) : ''
  return MEMBER_NAME.test(name) ? name : undefined
}

/** `undefined` for what is no roster. */
export const readRoster = (text: string): Roster | undefined => readJson(ROSTER, text)
/** `undefined` for what is no member's record. */
export const readMember = (text: string): MemberRecord | undefined => readJson(MEMBER, text)
