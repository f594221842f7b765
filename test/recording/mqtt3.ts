/** What subscribers of MQTT 3.1.1 see, told by what those of MQTT 5 see. */
import { lineOf } from './compare.ts'
import { pack, unpack } from './pack.ts'
import { fold, type Messages, type Recording, type Seen, type Stage } from './record.ts'

/** By stage, client and topic: what no rule tells. An empty list: nothing. */
export type Exceptions = Readonly<Record<string, Readonly<Record<string, Messages>>>>

export function underMqtt3(five: Recording, exceptions: Exceptions): Recording {
  const stages = translated(five).map(({ name, live, retained }) => {
    const all = Object.entries(live).map(([client, topics]) => {
      const messages = Object.entries({ ...topics, ...exceptions[name]?.[client] })
      return [client, Object.fromEntries(messages.filter(([, seen]) => seen.length > 0))] as const
    })
    return { name, live: Object.fromEntries(all), retained }
  })
  return pack('aedes', stages)
}

/** Where a record of MQTT 3.1.1 is otherwise than the rules say. */
export function exceptionsOf(five: Recording, three: Recording): Exceptions {
  const found: Record<string, Record<string, Record<string, readonly Seen[]>>> = {}
  const seen = new Map(unpack(three).map((stage) => [stage.name, stage.live]))
  for (const { name, live } of translated(five)) {
    for (const [client, told] of Object.entries(live)) {
      const real = seen.get(name)?.[client] ?? {}
      for (const topic of Object.keys({ ...told, ...real }).sort()) {
        const messages = real[topic] ?? []
        if (messages.map(lineOf).join('\n') === (told[topic] ?? []).map(lineOf).join('\n')) continue
        found[name] ??= {}
        found[name][client] ??= {}
        found[name][client][topic] = messages
      }
    }
  }
  return found
}

function translated(five: Recording): Stage[] {
  return unpack(five).map(({ name, live, retained }) => ({
    name,
    live: Object.fromEntries(
      Object.entries(live).map(([client, topics]) => {
        const messages = Object.entries(topics).map(([topic, all]) => {
          const each = all.flatMap(({ times = 1, ...seen }) => Array.from({ length: times }, () => seen))
          // The embedded broker marks retained commands for those too who are there when they come.
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

/** Without what MQTT 5 alone has. Who is there when a message comes does not see whether it is retained. */
function plain({ payload, retain, qos }: Seen, showsRetain: boolean): Seen {
  return {
    payload: payload.replaceAll('"protocol":"5"', '"protocol":"3.1.1"'),
    ...(retain && showsRetain && { retain }),
    ...(qos !== undefined && { qos }),
  }
}
