/** Faults that cut the answer to a write, and answer later reads so that they do not show what the hub has done. */
import { setTimeout as after } from 'node:timers/promises'
import type { GatewayRequest, Verdict } from '../../support/http-gateway.ts'
import { WRITES } from '../commands.ts'
import type { Fault, Faults, Scene } from './fault.ts'
import { isList, json, page } from './gateway.ts'

type FakeAnswer = (scene: Scene) => (request: GatewayRequest) => Verdict | undefined

const CUTS: Readonly<Record<string, Verdict>> = {
  'before it is executed': 'cut',
  'after it was executed': { change: () => 'cut' },
}

const FAKE_ANSWERS: Readonly<Record<string, FakeAnswer>> = {
  'a 404 page': () => () => page(404),
  'a page': () => () => page(200),
  'an error as a list': () => () => json({ error: 'starting up' }),
  'old data': ({ world: { hub, watch } }) => {
    watch.outdated = true
    const apps: Readonly<Record<string, unknown>> = Object.fromEntries(structuredClone([...hub.apps]))
    const settings = new Map(Object.keys(apps).map((id) => [id, hub.settings(id)]))
    return (request) => {
      if (isList(request)) return json(apps)
      const [, id = '', name] = /\/app\/([^/?]+)(?:\/setting(?:\/([^/?]+))?)?$/.exec(request.path) ?? []
      const known = settings.get(decodeURIComponent(id))
      if (known === undefined) return undefined
      if (name !== undefined) return json(known[decodeURIComponent(name)] ?? null)
      return json(request.path.endsWith('/setting') ? known : apps[decodeURIComponent(id)])
    }
  },
}

const MEAN_PAUSE_MS = 40

function cutThenFake(cut: Verdict, fake: FakeAnswer): Fault['run'] {
  return async (scene) => {
    const { world, random, load } = scene
    const answerTo = fake(scene)
    let fakesUntil = 0
    const end = world.gateway.rule((request) => {
      if (request.upgrade) return undefined
      if (request.method !== 'GET') {
        fakesUntil = performance.now() + random.int(1500, 3000)
        return cut
      }
      return performance.now() < fakesUntil ? answerTo(request) : undefined
    })
    for (const make of random.shuffle(Object.values(WRITES))) {
      const subject = load.subject()
      if (subject !== undefined) void load.issue(make(subject))
      await after(random.int(0, 2 * MEAN_PAUSE_MS))
    }
    await after(random.int(1500, 3500))
    end()
  }
}

/** Combines each cut with each answer to the reads with which the bridge verifies the write. */
const kinds = Object.entries(CUTS).flatMap(([when, cut]) =>
  Object.entries(FAKE_ANSWERS).map(([what, fake]): [string, Fault] => [
    `write cut ${when}, then ${what}`,
    { run: cutThenFake(cut, fake), hubWell: false },
  ]),
)

export const LIES: Faults = Object.fromEntries(kinds)
