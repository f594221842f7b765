import { setTimeout as after } from 'node:timers/promises'
import { Observer } from '../../support/observer.ts'
import { parse } from '../answers.ts'
import { appTopic, read } from '../commands.ts'
import { APPS, BASE, level } from '../model.ts'
import type { World } from '../world.ts'
import { type Faults, kindOf, type Scene } from './fault.ts'

const burst = kindOf({
  hubWell: true,
  staysOnline: true,
  // These faults count messages, so neither the bridge nor the broker may restart.
  holds: ['bridge', 'broker', 'hub'],
  stallMs: 10_000,
})

const PING = `${BASE}/bridge/cmd/ping`
let senders = 0

/** Sends `count` commands from one client as fast as the broker accepts them. The bridge must answer each command. */
async function flood(world: World, count: number, topic: string): Promise<void> {
  senders += 1
  await using sender = await Observer.on(world.broker.port, {
    ...world.watcherLogin,
    protocol: '5',
    filter: 'nothing/to/hear',
    keeps: false,
  })
  const sending = Array.from({ length: count }, (_, index) => {
    const token = `flood-${senders}-${index}`
    const offline = world.brokerProxy.open === 0
    world.sent.push({
      at: Date.now(),
      topic,
      token,
      hubRequest: null,
      write: false,
      kind: 'good',
      expiresAt: null,
      offline,
    })
    return sender.publish(topic, '', { properties: { correlationData: Buffer.from(token) } }).catch(() => undefined)
  })
  await Promise.all(sending)
}

/** Sends occasional commands from a different client. The bridge must answer these commands as usual. */
async function bystander({ load, random }: Scene, ms: number): Promise<void> {
  const endsAt = performance.now() + ms
  while (performance.now() < endsAt) {
    await load.issue(read(PING))
    await after(random.int(50, 250))
  }
}

const CHANGES = 1000
const TIMEOUT_MS = 10_000

export const BURSTS: Faults = {
  '1,100 pings at once': burst(({ world }) => flood(world, 1100, PING)),
  '300 requests for one app': burst(async ({ world, load }) => {
    const subject = load.subject()
    if (subject !== undefined) await flood(world, 300, appTopic(subject.app, 'get'))
  }),
  '1,000 changes at once': burst(
    async ({ world, random }) => {
      const ids = random.shuffle([...world.hub.apps.keys()].filter((id) => !id.startsWith('org.'))).slice(0, 10)
      const each = Math.floor(CHANGES / ids.length)
      const renames = (id: string) =>
        world.observer.seen.filter(({ topic, text }) => topic === `${APPS}${level(id)}/event` && isRename(text)).length
      const before = new Map(ids.map((id) => [id, renames(id)]))
      for (let round = 0; round < each; round += 1)
        for (const id of ids)
          if (world.hub.apps.has(id)) world.hub.change(id, { name: `burst ${round} ${random.word()}` })
      const missing = () => ids.filter((id) => renames(id) - (before.get(id) ?? 0) < each && world.hub.apps.has(id))
      const count = () => ids.reduce((sum, id) => sum + renames(id), 0)
      for (let last = -1, endsAt = 0; missing().length > 0; await after(100)) {
        const now = count()
        if (now > last) endsAt = performance.now() + TIMEOUT_MS
        else if (performance.now() > endsAt) break
        last = now
      }
      for (const id of missing())
        world.watch.object(
          'event lost',
          `${id} was renamed ${each} times, but sent ${renames(id) - (before.get(id) ?? 0)} events`,
        )
    },
    { alone: true },
  ),
  'a flood of 20,000 and a bystander': burst(
    (scene) => Promise.all([flood(scene.world, 20_000, PING), bystander(scene, 5000)]).then(() => undefined),
    { slow: true, stallMs: 30_000, agreeMs: 90_000 },
  ),
}

function isRename(text: string): boolean {
  const { changed }: { changed?: unknown } = Object(parse(text))
  return Array.isArray(changed) && changed.includes('name')
}
