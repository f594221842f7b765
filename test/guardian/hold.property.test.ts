/** Tests `updates.hold_days` with changing offers, clock changes, offline hubs, and restarts of the bridge. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import type { AppPatch } from '../../src/hub/app.ts'
import { runs } from '../support/runs.ts'
import { HOUR, OK, Stand } from './stand.ts'

const HOLD_MS = 24 * HOUR
/** The window is always open, so only `hold_days` decides when an update starts. */
const FILE =
  'guard: { watch: ["*"] }\nupdates: { policy: window, window: { start: "0 * * * *", length: 2h }, time_zone: UTC, hold_days: 1 }'

const NOTHING: AppPatch = { update_available: false, latest_version: null }
const offer = (version: string | null): AppPatch => ({ update_available: true, latest_version: version })

/** A hub with one app, which offers the versions that the test sets. */
class House {
  stand: Stand
  #said: AppPatch = NOTHING
  #online = true
  /** The error of the bridge's clock, in milliseconds. */
  #wrong = 0
  /** Version → milliseconds for which a bridge has seen the offer. */
  readonly #seen = new Map<string, number>()
  readonly installs: { readonly version: string; readonly held: boolean }[] = []

  constructor() {
    this.stand = this.#start({})
    this.#begin()
  }

  #start(app: AppPatch): Stand {
    const wrong = (clock: Clock): Clock => ({
      now: () => clock.now() + this.#wrong,
      elapsed: () => clock.elapsed(),
      after: (ms, task) => clock.after(ms, task),
    })
    const stand = new Stand(FILE, wrong)
    stand.answer = ({ payload }) => {
      const version = 'version' in payload ? String(payload.version) : (this.#said.latest_version ?? 'any')
      const held = this.#seen.get(version) ?? 0
      this.installs.push({ version, held: held >= HOLD_MS })
      this.#seen.delete(version)
      this.#said = NOTHING
      stand.say('a', { ...NOTHING, version })
      return Promise.resolve(OK)
    }
    stand.say('a', app)
    return stand
  }

  #begin(): void {
    this.stand.guard.activate(true)
    this.stand.say('a', this.#said)
    this.stand.guard.take('home', { kind: 'online', online: this.#online })
    this.stand.read()
  }

  restart(): void {
    const { memory } = this.stand.facts('a')
    const { version = null } = this.stand.apps.get('a') ?? {}
    this.stand.guard.standBy()
    this.stand = this.#start({ version, ...this.#said })
    this.stand.guard.learn('guardMemory', 'home', 'a', JSON.stringify(memory))
    this.#begin()
  }

  say(patch: AppPatch): void {
    this.#said = patch
    if (this.#online) this.stand.say('a', patch)
  }

  turn(online: boolean): void {
    this.#online = online
    if (online) this.stand.say('a', this.#said)
    if (online) this.stand.read()
    this.stand.guard.take('home', { kind: 'online', online: online })
  }

  step(ms: number): void {
    this.#wrong += ms
  }

  async wait(hours: number): Promise<void> {
    for (let left = hours; left > 0; left -= 1) {
      const { latest_version: version } = this.#said
      if (this.#online && version) this.#seen.set(version, (this.#seen.get(version) ?? 0) + HOUR)
      await this.stand.clock.advance(HOUR)
      if (this.#online) this.stand.read()
      await this.stand.clock.advance(0)
    }
  }
}

const DAY = 24 * HOUR
const steps = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: fc.record({ offer: fc.constantFrom('2.0.0', '2.0.1', null) }) },
    { weight: 1, arbitrary: fc.record({ offer: fc.constant(false as const) }) },
    { weight: 4, arbitrary: fc.record({ wait: fc.integer({ min: 1, max: 30 }) }) },
    { weight: 2, arbitrary: fc.record({ clock: fc.integer({ min: -400 * DAY, max: 400 * DAY }) }) },
    { weight: 1, arbitrary: fc.record({ restart: fc.constant(true) }) },
    { weight: 1, arbitrary: fc.record({ online: fc.boolean() }) },
  ),
  { maxLength: 25 },
)

test('no version is installed before the bridge has seen this version on offer for the configured days', async () => {
  let installs = 0
  await fc.assert(
    fc.asyncProperty(steps, async (taken) => {
      const house = new House()
      for (const one of taken) {
        if ('offer' in one) house.say(one.offer === false ? NOTHING : offer(one.offer))
        else if ('wait' in one) await house.wait(one.wait)
        else if ('clock' in one) house.step(one.clock)
        else if ('online' in one) house.turn(one.online)
        else house.restart()
      }
      house.stand.guard.standBy()
      expect(house.installs.filter(({ held }) => !held)).toEqual([])
      installs += house.installs.length
    }),
    // This example always installs an update, which only about 8 % of the random runs do.
    { numRuns: runs(25), examples: [[[{ offer: '2.0.0' }, { wait: 26 }]]] },
  )
  expect(installs).toBeGreaterThan(0)
}, 120_000)
