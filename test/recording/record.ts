/** What is written down of a run: its form, what is taken out of it, and how two of them are compared. */
import { createHash } from 'node:crypto'
import type { IPublishPacket } from 'mqtt'

/** One message as a subscriber sees it. */
export interface Seen {
  readonly payload: string
  /** Only where it is set. MQTT 3.1.1 shows it to those alone who come after the message. */
  readonly retain?: true
  /** Only where it is not 1. */
  readonly qos?: number
  readonly contentType?: string
  readonly userProperties?: Readonly<Record<string, unknown>>
  readonly correlationData?: string
  readonly responseTopic?: string
  readonly messageExpiry?: number
  /** So many of these in a row; default 1. */
  readonly times?: number
}

type Messages = Readonly<Record<string, readonly Seen[]>>

export interface Stage {
  readonly name: string
  /** By client, then by topic; in order within a topic, as MQTT promises no order between topics. */
  readonly live: Readonly<Record<string, Messages>>
  /** What a client that comes after the stage finds retained where that changed in the stage; `null`: nothing any more. */
  readonly retained: Readonly<Record<string, Seen | null>>
}

export interface Recording {
  readonly broker: string
  readonly stages: readonly Stage[]
  /** Long payloads in pieces, by the name under which messages refer to them; pieces that repeat by their name too. */
  readonly payloads: Readonly<Record<string, readonly string[]>>
  readonly pieces: Readonly<Record<string, string>>
}

const UUID = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g
/** Longer ones are only ever refused: their beginning and length say which it was. */
const MAX_PAYLOAD = 32 * 1024

/** Puts placeholders where no run is like another: how long a command took, identities drawn by lot, and the hubs' ports. */
export function normalise(payload: string, addresses: ReadonlyMap<string, string>): string {
  if (payload.length > MAX_PAYLOAD) return `${payload.slice(0, 8)}… <${payload.length} characters>`
  let text = payload.replace(/"duration_ms":\d+/g, '"duration_ms":"<ms>"').replace(UUID, '<uuid>')
  for (const [address, name] of addresses) text = text.replaceAll(address, `<${name}>`)
  return text
}

export function seenOf({ payload, retain, qos, properties = {} }: IPublishPacket, text: (raw: string) => string): Seen {
  const { contentType, userProperties, correlationData, responseTopic, messageExpiryInterval } = properties
  return {
    payload: text(payload.toString()),
    ...(retain && { retain }),
    ...(qos !== 1 && { qos }),
    ...(contentType !== undefined && { contentType }),
    ...(userProperties !== undefined && { userProperties: { ...userProperties } }),
    ...(correlationData !== undefined && { correlationData: correlationData.toString() }),
    ...(responseTopic !== undefined && { responseTopic }),
    ...(messageExpiryInterval !== undefined && { messageExpiry: messageExpiryInterval }),
  }
}

/** Equal messages in a row become one with their number, or without where it does not count. */
export function fold(messages: readonly Seen[], countless: boolean): Seen[] {
  const folded: { seen: Seen; times: number }[] = []
  for (const seen of messages) {
    const last = folded.at(-1)
    if (last !== undefined && JSON.stringify(last.seen) === JSON.stringify(seen)) last.times += 1
    else folded.push({ seen, times: 1 })
  }
  return folded.map(({ seen, times }) => (times === 1 || countless ? seen : { ...seen, times }))
}

export function sorted<T>(entries: Iterable<readonly [string, T]>): Record<string, T> {
  return Object.fromEntries([...entries].sort(([one], [other]) => (one < other ? -1 : 1)))
}

/** Payloads from this length on stand in a table, in pieces: discovery repeats many of them, and most of each. */
const LONG = 120

/** Moves long payloads out of the messages. */
export function pack(broker: string, stages: readonly Stage[]): Recording {
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
  return { broker, stages: packed, payloads, pieces }
}

function unpack({ stages, payloads, pieces }: Recording): Stage[] {
  const fetch = (seen: Seen): Seen => {
    const text = payloads[seen.payload]?.map((piece) => pieces[piece] ?? piece).join('')
    return { ...seen, payload: text ?? seen.payload }
  }
  return stages.map((stage) => mapStage(stage, fetch))
}

const nameOf = (text: string) => `@${createHash('sha256').update(text).digest('hex').slice(0, 10)}`

/** Cut where an object ends, but not into crumbs; put together again they are the text. */
function piecesOf(payload: string): string[] {
  const pieces: string[] = []
  for (const piece of payload.split(/(?<=\},)/)) {
    if ((pieces.at(-1)?.length ?? LONG) < LONG) pieces.push(`${pieces.pop()}${piece}`)
    else pieces.push(piece)
  }
  return pieces
}

/** Those that come more than once and are longer than their name. */
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

const LINE = 120

/** As the formatter of the repository leaves it: lists of short texts on one line. */
export function print(recording: Recording): string {
  const text = JSON.stringify(recording, null, 2)
  const list = /^( +"[^"]*": )\[\n((?: +"(?:[^"\\]|\\.)*",?\n)+) +\](,?)$/gm
  const lists = text.replace(list, (long: string, head: string, items: string, comma: string) => {
    const line = `${head}[${items.trim().split(/,\n +/).join(', ')}]${comma}`
    return line.length <= LINE ? line : long
  })
  return `${lists}\n`
}

/** Where two recordings differ, one text each: stage, client, topic, before, after. None: they are equal. */
export function differences(before: Recording, after: Recording): string[] {
  const [olds, news] = [unpack(before), unpack(after)]
  const names = (stages: readonly Stage[]) => stages.map(({ name }) => name).join(', ')
  if (names(olds) !== names(news)) return [`the stages differ\n  before: ${names(olds)}\n  after:  ${names(news)}`]
  return olds.flatMap((old, at) => {
    const [one, other] = [linesOf(old), linesOf(news[at] ?? old)]
    return [...new Set([...one.keys(), ...other.keys()])].flatMap((place) =>
      explain(`${old.name} | ${place}`, one.get(place) ?? [], other.get(place) ?? []),
    )
  })
}

/** Client and topic → one line each message. */
function linesOf({ live, retained }: Stage): Map<string, string[]> {
  const lines = new Map<string, string[]>()
  for (const [client, topics] of Object.entries(live)) {
    for (const [topic, all] of Object.entries(topics)) lines.set(`${client} | ${topic}`, all.map(lineOf))
  }
  for (const [topic, seen] of Object.entries(retained)) {
    lines.set(`retained | ${topic}`, [seen === null ? 'nothing any more' : lineOf(seen)])
  }
  return lines
}

function lineOf({ payload, ...rest }: Seen): string {
  return `${payload} ${JSON.stringify(rest)}`
}

function explain(place: string, before: readonly string[], after: readonly string[]): string[] {
  const most = Math.max(before.length, after.length)
  for (let at = 0; at < most; at += 1) {
    const [one, other] = [before[at], after[at]]
    if (one === other) continue
    const from = differsAt(one, other)
    const counts = before.length === after.length ? '' : ` (${before.length} messages before, ${after.length} after)`
    return [`${place} | message ${at + 1}${counts}\n  before: ${cut(one, from)}\n  after:  ${cut(other, from)}`]
  }
  return []
}

function differsAt(one = '', other = ''): number {
  let at = 0
  while (at < one.length && one[at] === other[at]) at += 1
  return at
}

const CONTEXT = 80

/** A line around the place of a difference. */
function cut(line: string | undefined, at: number): string {
  if (line === undefined) return '(no such message)'
  const from = Math.max(0, at - CONTEXT)
  const to = Math.min(line.length, at + 2 * CONTEXT)
  return `${from > 0 ? '…' : ''}${line.slice(from, to)}${to < line.length ? '…' : ''}`
}
