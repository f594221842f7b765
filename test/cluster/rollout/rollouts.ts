/** Orders rollouts in a fleet, and follows their records. */
import { test as base } from 'vitest'
import { readRollout } from '../../../src/cluster/rollout/record.ts'
import type { Rollout } from '../../../src/contract/rollout.ts'
import { createTopics } from '../../../src/contract/topics.ts'
import type { EmulatedHub } from '../../../src/emulator/hub.ts'
import { APP, type Fleet } from '../../support/fleet.ts'
import type { Answer } from '../../support/world.ts'

/** Run the tests concurrently, because each has its own fleet and mostly waits. */
export const test = base.concurrent

const PAUSE_MS = 1_000
export const RESTART = { command: 'restart', app: APP, pause: '1s' } as const
/** A pause in milliseconds that exceeds the time for which apps in the last wave are watched. */
export const SHORT_PAUSE_MS = 6_000
const STEP_MS = 5_000
const topics = createTopics('hub2mqtt')

type Condition = (rollout: Rollout) => boolean

/** Orders a rollout. By default, the rollout is named `t` and restarts the app. */
export const rollOut = (fleet: Fleet, order: object = {}): Promise<Answer> =>
  fleet.ask('rollout', { ...RESTART, transaction: 't', ...order })

export const answered = (fleet: Fleet, transaction = 't'): Promise<Rollout> =>
  untilRollout(fleet, transaction, ({ current }) => current[0]?.phase === 'answered')

/** Advances the clock, in steps too short to be detected as a suspension. */
export async function pass(fleet: Fleet, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= STEP_MS) {
    fleet.clock.jump(Math.min(left, STEP_MS))
    await fleet.ask('ping', {})
  }
}

export function rolloutOf({ observer }: Fleet, transaction: string): Rollout | undefined {
  const topic = topics.of('rollout', { transaction })
  return readRollout(topics, topic, observer.last(topic) ?? '')
}

export async function untilRollout(fleet: Fleet, transaction: string, holds: Condition): Promise<Rollout> {
  const { observer } = fleet
  const find = () => {
    const rollout = rolloutOf(fleet, transaction)
    return rollout !== undefined && holds(rollout) && rollout
  }
  return await observer.until(`the rollout ${transaction}`, find, 30_000).catch((error: Error) => {
    const told = observer.seen.filter(({ topic }) => topic.includes(APP)).slice(-12)
    const lines = told.map(({ at, topic, text }) => `${at} ${topic} ${text.slice(0, 200)}`)
    throw new Error(`${error.message}\n${JSON.stringify(rolloutOf(fleet, transaction))}\n${lines.join('\n')}`)
  })
}

/** Like `untilRollout`, but advances the clock. */
export async function passUntil(fleet: Fleet, transaction: string, holds: Condition): Promise<Rollout> {
  for (;;) {
    const rollout = rolloutOf(fleet, transaction)
    if (rollout !== undefined && holds(rollout)) return rollout
    await pass(fleet, STEP_MS)
  }
}

/** Resolves when the rollout has ended. Advances the clock past the pause of `RESTART` after each wave. */
export async function ended(fleet: Fleet, transaction = 't'): Promise<Rollout> {
  let skippedAt = ''
  return await untilRollout(fleet, transaction, ({ state, current, updated_at }) => {
    const pauses = current.length > 0 && current.every(({ phase }) => phase === 'answered')
    if (pauses && updated_at !== skippedAt) {
      fleet.clock.jump(PAUSE_MS)
      skippedAt = updated_at
    }
    return state !== 'running'
  })
}

/** Returns how often each hub was asked to restart the app. */
export function restarts({ hubs }: Fleet): number[] {
  const asked = ({ requests }: EmulatedHub) => requests.filter(({ operation }) => operation === 'restartApp')
  return [...hubs.values()].map((hub) => asked(hub).length)
}
