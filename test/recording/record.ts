/** The format of a recording, and the values that are removed from messages. */
import type { IPublishPacket } from 'mqtt'

export interface Seen {
  readonly payload: string
  /** The retain flag, if it is set. MQTT 3.1.1 shows it only to clients that subscribe after the message. */
  readonly retain?: true
  /** The QoS, if it is not 1. */
  readonly qos?: number
  readonly contentType?: string
  readonly userProperties?: Readonly<Record<string, unknown>>
  readonly correlationData?: string
  readonly responseTopic?: string
  readonly messageExpiry?: number
  /** The number of equal messages in a row; default: 1. */
  readonly times?: number
}

export type Messages = Readonly<Record<string, readonly Seen[]>>

export interface Stage {
  readonly name: string
  /** The live messages by client and topic. MQTT guarantees the order only within a topic. */
  readonly live: Readonly<Record<string, Messages>>
  /** The retained messages that have changed, as a new client receives them. `null`: the message was cleared. */
  readonly retained: Readonly<Record<string, Seen | null>>
}

export interface Recording {
  readonly broker: string
  readonly stages: readonly Stage[]
  /** Long payloads by name, each split into pieces. Instead of a repeated piece, they contain its name in `pieces`. */
  readonly payloads: Readonly<Record<string, readonly string[]>>
  readonly pieces: Readonly<Record<string, string>>
}

const UUID = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g
/** Only commands that are refused have longer payloads. Only their beginning and length are recorded. */
const MAX_PAYLOAD = 32 * 1024

/** Replaces values that differ between runs with placeholders: durations, random ids and the hubs' ports. */
export function normalise(payload: string, addresses: ReadonlyMap<string, string>): string {
  if (payload.length > MAX_PAYLOAD) return `${payload.slice(0, 8)}… <${payload.length} characters>`
  let text = payload.replace(/"duration_ms":\d+/g, '"duration_ms":"<ms>"').replace(UUID, '<uuid>')
  // The uptime depends on how fast the broker answers.
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
