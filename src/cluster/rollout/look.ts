/** What the broker holds of apps and rollouts. */
import type { Rollout, RolloutOrder } from '../../contract/rollout.ts'
import type { Session } from './carry-out.ts'
import { type KnownApp, readApp, readRollout } from './plan.ts'

/** Retained messages that a broker surely sends at a time. */
const MANY = 500

type Place = Pick<Session, 'client' | 'topics'>

/** The rollouts, each with its text, the one that was changed last at the end. */
export async function recordsOn({ client, topics }: Place): Promise<Map<Rollout, string>> {
  const found: [Rollout, string][] = []
  await client.read([topics.filterOf('rollout')], (topic, text) => {
    const rollout = readRollout(topics, topic, text)
    if (rollout !== undefined) found.push([rollout, text])
  })
  return new Map(found.sort(([one], [other]) => Date.parse(one.updated_at) - Date.parse(other.updated_at)))
}

/** The apps that an order may mean, and perhaps others. */
export async function appsOn({ client, topics }: Place, { app: wanted }: RolloutOrder): Promise<KnownApp[]> {
  const found = new Map<string, KnownApp>()
  const filter = topics.filterOf('app', /[*?]/.test(wanted) ? {} : { app: wanted })
  let before: number
  do {
    before = found.size
    await client.read([filter], (topic, text) => {
      const own = topics.parse(topic)
      const seen = readApp(text)
      if (own?.owner.kind !== 'app' || own.name !== 'app' || seen === undefined) return
      const { hub, app } = own.owner
      found.set(topic, { hub, app, enabled: seen.enabled })
    })
    // A broker may drop some of very many without notice.
  } while (found.size > MANY && found.size > before)
  return [...found.values()]
}
