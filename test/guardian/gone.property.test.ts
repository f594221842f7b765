/** Tests which data the guardian keeps while apps are missing from lists and come back, and the bridge restarts. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { AppPatch } from '../../src/hub/app.ts'
import { AppManager } from '../../src/hub/app-manager.ts'
import type { HubClient } from '../../src/hub/client.ts'
import { HOUR, MINUTE, OK, SECOND, Stand } from './stand.ts'

const LIMIT = 3
const WINDOW = 30 * MINUTE
/** Disables retries and storms, because their restarts do not count against the limit. */
const FILE = `guard: { watch: ["*"], backoff: 1s, max_restarts: ${LIMIT}, window: 30m, retry: [], storm: { apps: 100, within: 1s } }`
const IDS = ['a', 'b', 'c', 'd', 'e'] as const
const WELL: AppPatch = { version: '1.0.0', enabled: true, state: 'running', crashed: false, crash_count: 0 }

const app = fc.constantFrom(...IDS)
const lists = (maxLength: number) => fc.array(fc.subarray([...IDS]), { maxLength })
const STEPS = {
  /** Each entry contains the apps that are missing from one list. The first entry is for the current list. */
  lack: fc.record({ lack: lists(3) }),
  restart: fc.record({ restart: lists(2) }),
  anew: fc.record({ anew: app }),
  off: fc.record({ off: app }),
  snooze: fc.record({ snooze: app, minutes: fc.integer({ min: 1, max: 600 }) }),
  crash: fc.record({ crash: app }),
  wait: fc.record({ wait: fc.integer({ min: 1, max: 3600 }) }),
}
const step = fc.oneof(...Object.values(STEPS))
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** A hub whose apps crash a second after each restart, with a bridge that reads its lists. */
class House {
  readonly records = new Map<string, AppPatch>(IDS.map((id) => [id, WELL]))
  /** Each entry contains the apps that are missing from one of the next lists. */
  readonly lacking: (readonly string[])[] = []
  readonly #served: ReadonlySet<string>[] = []
  readonly #deleted = new Set<string>()
  /** The apps that were restarted less than a second ago. */
  readonly #falling = new Set<string>()
  readonly restarts = new Map<string, number[]>(IDS.map((id) => [id, []]))
  /** The expected data of the guardian. */
  readonly switched = new Map<string, boolean>()
  readonly snoozed = new Map<string, number>()
  readonly counted = new Map<string, number>()
  stand = this.#withAnswers(new Stand(FILE))
  apps = this.#startApps()

  async start(known: Iterable<string> = []): Promise<void> {
    this.stand.start()
    await this.read()
    // Read a second list, because the broker's data about an app is obsolete only if two lists lack the app.
    if ([...known].some((id) => !this.apps.all.has(id))) await this.read()
  }

  async restart(): Promise<void> {
    const before = this.stand
    before.guard.standBy()
    this.apps.destroy()
    this.stand = this.#withAnswers(await before.next())
    this.apps = this.#startApps()
    for (const id of this.#falling) this.#fallSoon(id)
    await this.start(before.apps.keys())
  }

  async read(): Promise<void> {
    const reading = this.apps.refresh()
    for (let i = 0; i < 10; i += 1) await this.stand.clock.advance(SECOND)
    await reading
  }

  anew(id: string): void {
    this.#deleted.add(id)
    this.apps.receive({ type: 'delete', id })
    this.apps.receive({ type: 'create', id, patch: this.records.get(id) ?? WELL })
    this.#deleted.delete(id)
  }

  crash(id: string): void {
    const count = (this.records.get(id)?.crash_count ?? 0) + 1
    this.#say(id, { state: 'crashed', crashed: true, crash_message: 'Error: boom', crash_count: count })
  }

  async take(step: Step): Promise<void> {
    if ('wait' in step) return await this.stand.clock.advance(step.wait * SECOND)
    if ('lack' in step || 'restart' in step) {
      this.lacking.splice(0, Number.POSITIVE_INFINITY, ...('lack' in step ? step.lack : step.restart))
      return 'lack' in step ? await this.read() : await this.restart()
    }
    const [id = ''] = Object.values(step).filter((value) => typeof value === 'string')
    if (!this.apps.all.has(id)) return
    if ('anew' in step) this.anew(id)
    else if ('crash' in step) this.crash(id)
    else if ('off' in step) this.#wish(id, false, undefined)
    else this.#wish(id, undefined, step.minutes * MINUTE)
  }

  /** Checks the guardian's data about each app in the bridge's list. */
  check(): void {
    for (const id of this.apps.all.keys()) {
      const state = this.stand.state(id)
      const snoozedUntil = this.snoozed.get(id) ?? 0
      expect([id, state.state === 'off']).toEqual([id, this.switched.get(id) === false])
      if (snoozedUntil > this.stand.clock.now()) expect(Date.parse(state.snoozed_until ?? '')).toBe(snoozedUntil)
      expect(state.restarts).toBeGreaterThanOrEqual(this.counted.get(id) ?? 0)
      this.counted.set(id, state.restarts)
    }
  }

  #wish(id: string, enabled: boolean | undefined, snooze: number | undefined): void {
    this.stand.control(id, { enabled, snooze })
    if (enabled !== undefined) this.switched.set(id, enabled)
    this.snoozed.set(id, snooze === undefined ? 0 : this.stand.clock.now() + snooze)
  }

  #say(id: string, patch: AppPatch): void {
    this.records.set(id, { ...this.records.get(id), ...patch })
    this.apps.receive({ type: 'update', id, patch })
  }

  #startApps(): AppManager {
    const client = {
      hub: { listSigned: true, confirm: () => Promise.resolve() },
      // `AppManager` calls only the operation that reads the apps.
      call: (() => {
        const lacking = this.lacking.shift() ?? []
        const records = [...this.records].filter(([id]) => !lacking.includes(id))
        this.#served.push(new Set(records.map(([id]) => id)))
        return Promise.resolve(new Map(records))
      }) as unknown as HubClient['call'],
    }
    const apps = new AppManager(
      client,
      this.stand.clock,
      () => true,
      () => {},
    )
    apps.subscribe(({ changes, read, silent }) => {
      for (const { id, after } of changes) {
        if (after === undefined) this.#checkRemoved(id)
        if (after === undefined) this.stand.apps.delete(id)
        else this.stand.apps.set(id, after)
      }
      this.stand.guard.take('home', { kind: 'apps', changes, read, silent })
    })
    return apps
  }

  #checkRemoved(id: string): void {
    const twice = this.#served.slice(-2).every((list) => !list.has(id))
    expect([id, twice || this.#deleted.has(id)]).toEqual([id, true])
  }

  #withAnswers(stand: Stand): Stand {
    stand.answer = async ({ app, isCurrent }) => {
      await Promise.resolve()
      if (!isCurrent()) return OK
      const now = stand.clock.now()
      const times = [...(this.restarts.get(app) ?? []), now].filter((at) => at > now - WINDOW)
      this.restarts.set(app, times)
      expect([app, times.length <= LIMIT]).toEqual([app, true])
      this.#say(app, { state: 'running', crashed: false, crash_message: null })
      this.#fallSoon(app)
      return OK
    }
    return stand
  }

  #fallSoon(id: string): void {
    this.#falling.add(id)
    const { stand } = this
    stand.clock.after(SECOND, () => {
      if (stand !== this.stand) return
      this.#falling.delete(id)
      this.crash(id)
    })
  }
}

test('switches, snoozes, counts and the limit of restarts survive lists that lack an app, an app that is added again, and restarts', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const house = new House()
      await house.start()
      for (const one of steps) {
        await house.take(one)
        house.check()
      }
      house.stand.guard.standBy()
      house.apps.destroy()
    }),
    { numRuns: 300 },
  )
}, 120_000)

test('data on an app is dropped when it has been missing for a day, however often the bridge was restarted', async () => {
  const house = new House()
  await house.start()
  house.stand.control('a', { enabled: false })
  const record = house.records.get('a') ?? WELL
  for (const [missingHours, state] of [
    [23, 'off'],
    [30, 'watching'],
  ] as const) {
    house.records.delete('a')
    for (let hour = 0; hour < missingHours; hour += 1) {
      await house.read()
      await house.stand.clock.advance(HOUR)
      if (hour % 5 === 0) await house.restart()
    }
    house.records.set('a', record)
    await house.read()
    expect(house.stand.state('a').state).toBe(state)
  }
})

test('the broker holds the fifty newest removed apps of a hub in 64 KiB, with shorter histories if they are long', () => {
  const ids = Array.from({ length: 70 }, (_, index) => `app ${index}`)
  const stand = new Stand().start(...ids).read()
  for (const id of ids) {
    for (let i = 0; i < 10; i += 1) {
      stand.crash(id, `Error: ${'boom '.repeat(50)}${i}`)
      stand.run(id)
    }
    stand.remove(id)
  }
  const long = stand.guard.goneAppsOf('home') ?? []
  expect(long.map(({ app }) => app)).toEqual(ids.slice(-50).reverse())
  expect(long[0]?.history.length).toBeGreaterThan(0)
  expect(JSON.stringify(long).length).toBeLessThanOrEqual(65_536)
  for (const id of ids) {
    stand.say(id, {})
    stand.control(id, { forget: true, enabled: false })
    stand.remove(id)
  }
  const short = stand.guard.goneAppsOf('home') ?? []
  expect(short.map(({ app }) => app)).toEqual(ids.slice(-50).reverse())
})

test('data on apps that configuration hides, or that another hub has, is dropped', () => {
  const stand = new Stand().start('a', 'b', 'c', 'd').read()
  for (const id of stand.apps.keys()) stand.control(id, { enabled: false })
  const remembered = () => stand.guard.goneAppsOf('home')?.map(({ app }) => app)
  stand.remove('a')
  stand.remove('b')
  stand.remove('c', true)
  stand.hidden.add('b')
  stand.read()
  expect(remembered()).toEqual(['a'])
  stand.remove('d', true)
  expect(remembered()).toEqual([])
})
