/** An episode without a fault, and faults that exist only to reveal planted bugs. Campaigns omit both. */
import { setTimeout as after } from 'node:timers/promises'
import { until } from '../../support/until.ts'
import { appTopic, read, WRITES } from '../commands.ts'
import { type Faults, kindOf, type Scene } from './fault.ts'
import { isList, json, page } from './gateway.ts'
import { broker } from './limits.ts'

/**
 * The hub identifies itself after `SLOW_PING_MS`. The waiting writes expire after `SOON_MS`. The difference is large,
 * because the checker allows for the time in which the processes waited for a CPU.
 */
const SLOW_PING_MS = 5_000
const SOON_MS = 250

async function expireWaiting({ world, load }: Scene): Promise<void> {
  let cuts = 0
  let pings = 0
  world.gateway.rule(({ path }) => {
    if (cuts > 0 && path.includes('/locale')) {
      cuts -= 1
      return 'cut'
    }
    if (!path.includes('/system/ping')) return undefined
    pings += 1
    return {
      async change(answer) {
        await after(SLOW_PING_MS)
        return answer
      },
    }
  })
  for (let round = 0; round < 2; round += 1) {
    const subject = load.subject()
    if (subject === undefined) return
    // The bridge repeats this read once after a cut, so cut both attempts.
    cuts = 2
    const before = pings
    await load.issue(read(appTopic(subject.app, 'get-locales')))
    await until('the bridge to ask for the identity', () => pings > before)
    for (let left = 3; left > 0; left -= 1) {
      const other = load.subject()
      if (other !== undefined) void load.issue(WRITES.set(other), Date.now() + SOON_MS)
    }
    await after(SLOW_PING_MS + 500)
  }
}

const other = kindOf({})

export const OTHERS: Faults = {
  'nothing for a while': other(() => after(3000), { hubWell: true }),
  'broker long away': other(
    async ({ world }) => {
      world.cutOff()
      await after(7000)
      world.brokerProxy.heal()
    },
    { hubWell: true },
  ),
  'hub crawls': other(async ({ world }) => {
    world.hub.behave('slow-headers', { ms: 1800, operation: ['restartApp', 'setAppSetting', 'say'] })
    await after(4000)
    world.hub.behaveWell()
  }),
  'installs cut': other(async ({ world, load }) => {
    world.gateway.rule(({ method, path }) => (method === 'POST' && path.endsWith('/store') ? 'cut' : undefined))
    for (let left = 6; left > 0; left -= 1) {
      const subject = load.subject()
      if (subject !== undefined) void load.issue(WRITES.install(subject))
      await after(100)
    }
    await after(1500)
  }),
  'removals cut, then a 404 page': other(async ({ world, load }) => {
    const cut = new Set<string>()
    world.gateway.rule(({ method, path }) => {
      const subject = path.replace(/\?.*/, '')
      if (method === 'GET') return cut.has(subject) ? page(404) : undefined
      if (method !== 'DELETE') return undefined
      cut.add(subject)
      return 'cut'
    })
    for (const remove of [WRITES.unset, WRITES.uninstall, WRITES.unset]) {
      const subject = load.subject()
      if (subject !== undefined) void load.issue(remove(subject))
      await after(200)
    }
    await after(1500)
  }),
  'hub starts up for long': other(async ({ world }) => {
    world.gateway.rule((request) => (isList(request) ? json({ error: 'starting up' }) : undefined))
    // Wait, because the bridge accepts a list that has lost all apps only after five reads, 2 s apart.
    await after(12_000)
  }),
  'hub slow to show who it is': other(expireWaiting),
  'empty broker accepts packets of 2,000 bytes': other(
    broker(['max_packet_size 2000'], { online: true, forgets: true }),
    { hubWell: true, holds: ['broker', 'bridge'] },
  ),
}
