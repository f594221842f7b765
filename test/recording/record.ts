/** What is written down of a run, and what is taken out of it. */
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

export type Messages = Readonly<Record<string, readonly Seen[]>>

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
  // How far the clock went on depends on what the broker had under way.
  text = text.replace(/"app_uptime_seconds":\d+/g, '"app_uptime_seconds":"<s>"')
  text = text.replace(/"samples":\[\[[\d,.[\]]*\]\]/g, '"samples":"<samples>"')
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

/** Equal messages in a row become one with their number. */
export function fold(messages: readonly Seen[]): Seen[] {
  const folded: { seen: Seen; times: number }[] = []
  for (const seen of messages) {
    const last = folded.at(-1)
    if (last !== undefined && JSON.stringify(last.seen) === JSON.stringify(seen)) last.times += 1
    else folded.push({ seen, times: 1 })
  }
  return folded.map(({ seen, times }) => (times === 1 ? seen : { ...seen, times }))
}

export function sorted<T>(entries: Iterable<readonly [string, T]>): Record<string, T> {
  return Object.fromEntries([...entries].sort(([one], [other]) => (one < other ? -1 : 1)))
}
