/** Parses a response with many records one record at a time, so that it does not block the event loop. */
import { setImmediate as turn } from 'node:timers/promises'
import { endOfString, isRecord } from '../base/json.ts'
import { JSON_LEVELS } from './decode.ts'
import { HubError } from './errors.ts'

/** Far more than any home has. */
const MAX_RECORDS = 20_000
/** Larger than any device or flow: each record blocks the event loop while it is parsed. */
const MAX_RECORD_LENGTH = 512 * 1024
const TOO_MUCH = 'too many records, or one that is too large.'
/** Yields to the event loop after this many characters. */
const AT_ONCE = 128 * 1024

/**
 * Calls `take` with each record in a JSON text: an object or array of records. Skips values that are not records.
 * @throws HubError `nonsense` for any other text, and if a limit is exceeded
 */
export async function eachRecord(text: string, take: (record: Record<string, unknown>) => void): Promise<void> {
  let [records, turnedAt] = [0, 0]
  for (const { start, end } of recordsIn(text)) {
    if (start !== undefined) {
      records += 1
      if (records > MAX_RECORDS || end - start > MAX_RECORD_LENGTH) throw nonsense(TOO_MUCH)
      const record = parsed(text.slice(start, end))
      if (isRecord(record)) take(record)
    }
    if (end - turnedAt < AT_ONCE) continue
    turnedAt = end
    await turn()
  }
  // An error sent with a success status is not an empty list.
  if (records === 0 && !EMPTY.has(text.slice(0, 100).trim())) throw nonsense('a list without records.')
}

const EMPTY: ReadonlySet<string> = new Set(['{}', '[]'])

interface Found {
  /** `undefined`: no record ends here, but it is time to yield. */
  readonly start?: number
  readonly end: number
}

const [QUOTE, COMMA] = ['"', ','].map((char) => char.charCodeAt(0))

/** The end of a JSON string. @throws HubError if it exceeds the maximum length of a record */
function endOfText(text: string, start: number): number {
  const end = endOfString(text, start, Math.min(text.length, start + MAX_RECORD_LENGTH))
  if (end < text.length && text.charCodeAt(end) !== QUOTE) throw nonsense(TOO_MUCH)
  return end
}

/** The positions of the objects and arrays directly inside the outermost one. */
function* recordsIn(text: string): Generator<Found> {
  if (!['[', '{'].includes(text.trimStart().charAt(0))) throw nonsense('something that is not a list.')
  let [depth, start] = [0, 0]
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at)
    if (char === QUOTE) at = endOfText(text, at)
    else if (isOpening(char)) {
      depth += 1
      if (depth === 2) start = at
      if (depth > JSON_LEVELS) throw nonsense(`JSON of more than ${JSON_LEVELS} levels.`)
    } else if (isClosing(char)) {
      depth -= 1
      if (depth === 1) yield { start, end: at + 1 }
    } else if (char === COMMA) yield { end: at }
  }
  if (depth !== 0) throw nonsense('an incomplete list.')
}

/** The codes of `{` and `[`, and of `}` and `]`, differ by this bit. */
const CURLY = 0x20
const isOpening = (char: number) => (char & ~CURLY) === 0x5b
const isClosing = (char: number) => (char & ~CURLY) === 0x5d

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw nonsense('something that is not JSON.')
  }
}

const nonsense = (what: string) => new HubError('nonsense', `The hub answered with ${what}`)
