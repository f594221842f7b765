/** Tests the guardian's promises with random events from hubs, users, commands and clocks. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { HubCommand } from '../../src/contract/command.ts'
import { COMMANDS } from '../../src/contract/commands.ts'
import type { AppPatch } from '../../src/hub/app.ts'
import { runs } from '../support/runs.ts'
import { HOUR, MINUTE, OK, SECOND, Stand } from './stand.ts'

const IDS = ['a', 'b'] as const
const BACK_UP_MS = 8 * SECOND

/** The results of a restart: the app runs, runs with the crash flag, crashes again, or does not change. */
const ENDS = ['well', 'flagged', 'dies', 'nothing'] as const

/** The commands for an app, except those of the guardian. Generic calls occur twice, as a write and as a read. */
const ROWS: readonly HubCommand[] = COMMANDS.filter((row) => row.target !== 'bridge')
  .filter(({ target, about, needs }) => needs === undefined && (target === 'app' || about !== undefined))
  .flatMap((row) => (row.reaches ? [row, { ...row, write: false }] : [row]))

const retry = fc.constantFrom('[]', '[20s, 40s]')
const id = fc.constantFrom(...IDS)
const message = fc.constantFrom('Error: boom', 'Too many memwarns', null)
const reported = fc.boolean()
const STEPS = {
  crash: fc.record({ kind: fc.constant('crash'), id, message }),
  flagged: fc.record({ kind: fc.constantFrom('crash-running', 'recover-flagged'), id, message, reported }),
  wait: fc.record({ kind: fc.constant('wait'), ms: fc.integer({ min: 1, max: 90 * SECOND }) }),
  people: fc.record({ kind: fc.constantFrom('disable', 'enable', 'stop', 'recover', 'remove'), id, reported }),
  reads: fc.record({ kind: fc.constant('reads'), fail: fc.boolean() }),
  list: fc.record({ kind: fc.constant('list') }),
  silence: fc.record({ kind: fc.constant('silence'), id: fc.constant('a') }),
  command: fc.record({ kind: fc.constant('command'), id, row: fc.nat(ROWS.length - 1) }),
  version: fc.record({ kind: fc.constant('version'), id, to: fc.constantFrom('1.0.0', '2.0.0') }),
  ends: fc.record({ kind: fc.constant('ends'), end: fc.constantFrom(...ENDS) }),
  snooze: fc.record({ kind: fc.constant('snooze'), id, ms: fc.integer({ min: SECOND, max: 10 * MINUTE }) }),
  setClock: fc.record({ kind: fc.constant('set-clock'), ms: fc.integer({ min: -12 * HOUR, max: 12 * HOUR }) }),
} as const
const { crash, flagged, wait, people, reads, list, silence, command, version, ends, snooze, setClock } = STEPS
type Step = (typeof STEPS)[keyof typeof STEPS] extends fc.Arbitrary<infer T> ? T : never

interface Truth {
  record: AppPatch & { readonly crash_count: number }
  /** Whether the app has crashed, and since then was neither restarted nor stopped by a user. */
  fallen: boolean
  starting: boolean
  gone: boolean
  writtenAt: number
  readonly restarts: number[]
  readonly versions: Set<string>
}

class Home {
  readonly stand: Stand
  readonly broken: string[] = []
  /** The app and the time of each restart, in order. */
  readonly log: string[] = []
  readonly #truths = new Map<string, Truth>(
    IDS.map((id) => [
      id,
      {
        record: {
          enabled: true,
          state: 'running',
          crashed: false,
          crash_message: null,
          crash_count: 0,
          cpu_percent: 1,
        },
        fallen: false,
        starting: false,
        gone: false,
        writtenAt: Number.NEGATIVE_INFINITY,
        restarts: [],
        versions: new Set(['1.0.0']),
      },
    ]),
  )
  #end: (typeof ENDS)[number] = 'well'
  #fails = false

  /** @param retry value of `guard.retry` */
  constructor(retry: string) {
    this.stand = new Stand(`guard: { watch: ["*"], max_restarts: 2, retry: ${retry} }`).start(...IDS)
    const { stand } = this
    stand.found = (id) => (this.#fails || this.#truth(id).gone ? null : this.#truth(id).record)
    stand.answer = ({ app }) => {
      this.#judge(app)
      this.#truth(app).starting = true
      stand.clock.after(BACK_UP_MS, () => this.#comeUp(app))
      return Promise.resolve(OK)
    }
    for (const id of IDS) stand.say(id, this.#truth(id).record)
    stand.read()
  }

  async run(steps: readonly Step[]): Promise<this> {
    const { stand } = this
    for (const step of steps) {
      await this.#step(step)
      // The guardian cannot detect an event between a read and the restart that follows it, so let both finish.
      await new Promise(setImmediate)
    }
    await stand.clock.advance(5 * MINUTE)
    // Make everything work again. Each app that is down must then be restarted.
    const rest: readonly Step[] = [{ kind: 'ends', end: 'well' }, { kind: 'reads', fail: false }, { kind: 'list' }]
    for (const step of rest) await this.#step(step)
    await stand.clock.advance(30 * MINUTE)
    for (const [app, { fallen, gone, record }] of this.#truths) {
      const isHopeless = gone || stand.state(app).state === 'given_up'
      // A crashed app that reports `running` has been restarted.
      if (fallen && record.state !== 'running' && !isHopeless)
        this.broken.push(`${app} is still down: ${stand.state(app).state}`)
    }
    return this
  }

  #step(step: Step): Promise<void> | void {
    const { stand } = this
    switch (step.kind) {
      case 'crash':
        return this.#crash(step.id, { state: 'crashed', crash_message: step.message })
      case 'crash-running':
        // Skip this event during a start: the guardian cannot distinguish it from an app with its old crash flag.
        if (this.#truth(step.id).starting) return
        return this.#crash(step.id, { crash_message: step.message })
      case 'disable':
        return this.#person(step, { enabled: false, state: 'stopped', crashed: false })
      case 'enable':
        return this.#person(step, { enabled: true, state: 'running', crashed: false })
      case 'stop':
        return this.#person(step, { state: 'stopped', crashed: false, crash_message: null })
      case 'recover':
        return this.#person(step, { state: 'running', crashed: false, crash_message: null })
      case 'recover-flagged':
        if (this.#truth(step.id).record.state === 'crashed')
          this.#person({ ...step, reported: true }, { state: 'running' })
        return
      case 'silence':
        this.#change(step.id, { cpu_percent: null }, true)
        stand.read(3)
        return
      case 'remove':
        this.#truth(step.id).gone = true
        return
      case 'version':
        this.#truth(step.id).versions.add(step.to)
        return this.#change(step.id, { version: step.to }, true)
      case 'command': {
        const row = ROWS[step.row % ROWS.length]
        if (row === undefined) return
        const truth = this.#truth(step.id)
        if (row.write) truth.writtenAt = stand.clock.elapsed()
        // A start by command resets the limit.
        if (/^(?:restart|enable)App$/.test(row.operation ?? '')) truth.restarts.length = 0
        stand.command(step.id, row)
        return
      }
      case 'snooze':
        stand.control(step.id, { snooze: step.ms })
        return
      case 'ends':
        this.#end = step.end
        return
      case 'reads':
        this.#fails = step.fail
        return
      case 'list':
        for (const id of IDS) if (!this.#truth(id).gone) stand.say(id, this.#truth(id).record)
        stand.read()
        return
      case 'set-clock':
        return stand.clock.step(step.ms)
      case 'wait':
        return stand.clock.advance(step.ms)
    }
  }

  #truth(id: string): Truth {
    const truth = this.#truths.get(id)
    if (truth === undefined) throw new Error(`no app ${id}`)
    return truth
  }

  #change(id: string, patch: AppPatch, reported: boolean): void {
    const truth = this.#truth(id)
    truth.record = { ...truth.record, ...patch, crash_count: patch.crash_count ?? truth.record.crash_count }
    if (reported && !truth.gone) this.stand.say(id, truth.record)
  }

  #crash(id: string, patch: AppPatch): void {
    const { record } = this.#truth(id)
    if (record.state !== 'running') return
    this.#truth(id).fallen = true
    this.#change(id, { ...patch, crashed: true, crash_count: record.crash_count + 1 }, true)
  }

  #person({ id, reported }: { readonly id: string; readonly reported: boolean }, patch: AppPatch): void {
    if (patch.enabled === undefined && this.#truth(id).record.enabled === false) return
    this.#truth(id).fallen = false
    this.#change(id, patch, reported)
  }

  #comeUp(id: string): void {
    const truth = this.#truth(id)
    truth.starting = false
    if (!truth.fallen || truth.gone || this.#end === 'nothing') return
    truth.fallen = false
    const isFlagged = this.#end === 'flagged'
    this.#change(id, { state: 'running', ...(!isFlagged && { crashed: false, crash_message: null }) }, true)
    if (this.#end === 'dies') this.#crash(id, { state: 'crashed', crash_message: 'Error: again' })
  }

  #judge(id: string): void {
    const truth = this.#truth(id)
    const { record, restarts, versions } = truth
    const now = this.stand.clock.elapsed()
    this.log.push(`${id} ${now}`)
    if (truth.gone) this.broken.push(`${id} is gone`)
    if (record.enabled === false) this.broken.push(`${id} is disabled`)
    if (!truth.fallen) this.broken.push(`${id} is not down: ${record.state}, crashed ${record.crashed}`)
    if (this.#fails) this.broken.push(`${id} could not be read`)
    if (now - truth.writtenAt < MINUTE) this.broken.push(`${id} ${now - truth.writtenAt} ms after a command`)
    // After the guardian has given up on an app, the delays in `retry` apply instead of the limit.
    const wait = now - (restarts.at(-1) ?? 0)
    if (this.stand.state(id).state === 'given_up') {
      if (wait < 20 * SECOND) this.broken.push(`${id} is tried again after ${wait} ms`)
      return
    }
    restarts.push(now)
    const recent = restarts.filter((at) => at > now - 30 * MINUTE).length
    if (recent > 2 * versions.size) this.broken.push(`${id} ${recent} restarts with ${versions.size} versions`)
  }
}

const dies: Step = { kind: 'ends', end: 'dies' }

/** Each case: a title, the events in addition to crashes and waits, and the first steps. */
test.each<[string, readonly fc.Arbitrary<Step>[], readonly Step[]]>([
  ['an app that the hub does not report as down, also right before the restart', [people, reads, list], []],
  ['an app because of the flag of an earlier crash', [flagged, ends], []],
  ['a silent app, unless configuration requires a restart', [silence], []],
  ['an app within a minute after a command that writes', [command], []],
  ['an app more often than the limit, whichever version it goes back to', [version], [dies]],
  [
    'an app against these rules when all of these steps are combined',
    [people, reads, list, flagged, ends, silence, command, version, snooze, setClock],
    [],
  ],
])('the guardian never restarts %s', { timeout: 60_000 }, async (_, more, first) => {
  const steps = fc.array(fc.oneof(crash, wait, wait, ...more), { maxLength: 40, size: 'max' })
  const property = fc.asyncProperty(retry, steps, async (times, story) => {
    expect((await new Home(times).run([...first, ...story])).broken).toEqual([])
  })
  await fc.assert(property, { numRuns: runs(50) })
})

test('a clock that is set forwards or back, by hours, delays or advances no restart', { timeout: 60_000 }, async () => {
  const steps = fc.array(fc.oneof(crash, wait, wait, setClock, command, ends, snooze, list), {
    maxLength: 40,
    size: 'max',
  })
  const property = fc.asyncProperty(retry, steps, async (times, all) => {
    // Use only one app, because if two apps are due at the same time, either may be first.
    const story = all.map((step) => ('id' in step ? { ...step, id: 'a' as const } : step))
    const still = story.filter(({ kind }) => kind !== 'set-clock')
    expect((await new Home(times).run(story)).log).toEqual((await new Home(times).run(still)).log)
  })
  await fc.assert(property, { numRuns: runs(50) })
})
