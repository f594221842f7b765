/** A fault in which the clock jumps ahead several times, by minutes each time and by hours in total. */
import { setTimeout as after } from 'node:timers/promises'
import { appTopic } from '../commands.ts'
import { COPY } from '../history.ts'
import { BASE, publishedApps } from '../model.ts'
import type { Faults, Scene } from './fault.ts'

const MINUTE = 60_000

/** Repeats a few transactions at intervals of minutes, and sends a ping without a transaction after each. */
async function repeat({ world, random, load }: Scene): Promise<void> {
  await world.started()
  const [app = ''] = publishedApps
  await world.observer.publish(`${BASE}/bridge/cmd/ping`, '').catch(() => undefined)
  const word = random.word()
  const transactions = Array.from({ length: 4 }, (_, index) => `hours-${word}-${index}`)
  for (let left = random.int(12, 20); left > 0; left -= 1) {
    const transaction = random.pick(transactions)
    // Each transaction always has the same command.
    const topic = transaction.endsWith('0') ? `${BASE}/bridge/cmd/ping` : appTopic(app, 'get-locales')
    const token = `${transaction}${COPY}${left}`
    await load.again({ topic, hubRequest: null, write: false, kind: 'good', token }, JSON.stringify({ transaction }))
    await world.observer.publish(`${BASE}/bridge/cmd/ping`, '').catch(() => undefined)
    await after(random.int(100, 300))
    if (random.chance(0.5)) world.jump(random.int(1, 4) * MINUTE)
    await after(200)
  }
}

export const HOURS: Faults = { 'hours pass': { run: repeat, hubWell: false, holds: ['bridge'], stallMs: 2000 } }
