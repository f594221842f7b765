/** Derives the messages for MQTT 3.1.1 subscribers from those for MQTT 5. */
import { lineOf } from './compare.ts'
import { fold, type Messages, type Seen, type Stage } from './record.ts'

/** Messages keyed by stage, client and topic. An empty list means that the topic has no messages. */
export type Exceptions = Readonly<Record<string, Readonly<Record<string, Messages>>>>

export function underMqtt3(five: readonly Stage[], exceptions: Exceptions): Stage[] {
  return translated(five).map(({ name, live, retained }) => {
    const all = Object.entries(live).map(([client, topics]) => {
      const messages = Object.entries({ ...topics, ...exceptions[name]?.[client] })
      return [client, Object.fromEntries(messages.filter(([, seen]) => seen.length > 0))] as const
    })
    return { name, live: Object.fromEntries(all), retained }
  })
}

export function exceptionsOf(five: readonly Stage[], three: readonly Stage[]): Exceptions {
  const found: Record<string, Record<string, Record<string, readonly Seen[]>>> = {}
  const seen = new Map(three.map((stage) => [stage.name, stage.live]))
  for (const { name, live } of translated(five)) {
    for (const [client, derived] of Object.entries(live)) {
      const real = seen.get(name)?.[client] ?? {}
      for (const topic of Object.keys({ ...derived, ...real }).sort()) {
        const messages = real[topic] ?? []
        if (messages.map(lineOf).join('\n') === (derived[topic] ?? []).map(lineOf).join('\n')) continue
        found[name] ??= {}
        found[name][client] ??= {}
        found[name][client][topic] = messages
      }
    }
  }
  return found
}

function translated(five: readonly Stage[]): Stage[] {
  return five.map(({ name, live, retained }) => ({
    name,
    live: Object.fromEntries(
      Object.entries(live).map(([client, topics]) => {
        const messages = Object.entries(topics).map(([topic, all]) => {
          const each = all.flatMap(({ times = 1, ...seen }) => Array.from({ length: times }, () => seen))
          // The embedded broker sets the retain flag of commands even for subscribers that were already subscribed.
          return [topic, fold(each.map((seen) => plain(seen, topic.includes('/cmd/'))))] as const
        })
        return [client, Object.fromEntries(messages)] as const
      }),
    ),
    retained: Object.fromEntries(
      Object.entries(retained).map(([topic, seen]) => [topic, seen === null ? null : plain(seen, true)]),
    ),
  }))
}

/** Removes the properties of MQTT 5, and the retain flag unless subscribers receive it. */
function plain({ payload, retain, qos }: Seen, showsRetain: boolean): Seen {
  return {
    payload: payload.replaceAll('"protocol":"5"', '"protocol":"3.1.1"'),
    ...(retain && showsRetain && { retain }),
    ...(qos !== undefined && { qos }),
  }
}
