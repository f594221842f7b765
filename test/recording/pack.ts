/** The file format of a recording. Long payloads are in a table, because discovery payloads are nearly the same. */
import { createHash } from 'node:crypto'
import type { Messages, Recording, Seen, Stage } from './record.ts'

/** Payloads of at least this length are stored in the table, in pieces. */
const LONG = 120

function pack(stages: readonly Stage[]): Recording {
  const table = new Map<string, readonly string[]>()
  const store = (seen: Seen): Seen => {
    if (seen.payload.length < LONG) return seen
    const name = nameOf(seen.payload)
    table.set(name, piecesOf(seen.payload))
    return { ...seen, payload: name }
  }
  const packed = stages.map((stage) => mapStage(stage, store))
  const often = new Set(repeated([...table.values()].flat()))
  const pieces = Object.fromEntries([...often].map((piece) => [nameOf(piece), piece]))
  const payloads = Object.fromEntries(
    [...table].map(([name, all]) => [name, all.map((piece) => (often.has(piece) ? nameOf(piece) : piece))]),
  )
  return { broker: 'mosquitto', stages: packed, payloads, pieces }
}

export function unpack({ stages, payloads, pieces }: Recording): Stage[] {
  const fetch = (seen: Seen): Seen => {
    const text = payloads[seen.payload]?.map((piece) => pieces[piece] ?? piece).join('')
    return { ...seen, payload: text ?? seen.payload }
  }
  return stages.map((stage) => mapStage(stage, fetch))
}

const nameOf = (text: string) => `@${createHash('sha256').update(text).digest('hex').slice(0, 10)}`

/** Splits a payload after objects, into pieces of a minimum length. */
function piecesOf(payload: string): string[] {
  const pieces: string[] = []
  for (const piece of payload.split(/(?<=\},)/)) {
    if ((pieces.at(-1)?.length ?? LONG) < LONG) pieces.push(`${pieces.pop()}${piece}`)
    else pieces.push(piece)
  }
  return pieces
}

function repeated(pieces: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const piece of pieces) counts.set(piece, (counts.get(piece) ?? 0) + 1)
  return [...counts].filter(([piece, count]) => count > 1 && piece.length >= LONG).map(([piece]) => piece)
}

function mapStage({ name, live, retained }: Stage, change: (seen: Seen) => Seen): Stage {
  const messages = (topics: Messages) =>
    Object.fromEntries(Object.entries(topics).map(([topic, all]) => [topic, all.map(change)]))
  return {
    name,
    live: Object.fromEntries(Object.entries(live).map(([client, topics]) => [client, messages(topics)])),
    retained: Object.fromEntries(
      Object.entries(retained).map(([topic, seen]) => [topic, seen === null ? null : change(seen)]),
    ),
  }
}

/** Prints each message and each piece on one line, for readable diffs. */
export function print(stages: readonly Stage[]): string {
  return `${lines(pack(stages), '')}\n`
}

function lines(value: unknown, indent: string): string {
  if (typeof value !== 'object' || value === null || 'payload' in value) return JSON.stringify(value)
  const inner = `${indent}  `
  const list = Array.isArray(value)
  const entries = Object.entries(value).map(
    ([key, each]) => `${list ? '' : `${JSON.stringify(key)}: `}${lines(each, inner)}`,
  )
  const [open, close] = list ? '[]' : '{}'
  if (list ? entries.length < 2 : entries.length === 0) return `${open}${entries.join('')}${close}`
  return `${open}\n${inner}${entries.join(`,\n${inner}`)}\n${indent}${close}`
}
