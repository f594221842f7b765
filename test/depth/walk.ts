/** Measures which functions of `src` the daemon runs for an event and for a command, with V8's precise coverage. */
import * as v from 'valibot'
import { variables } from '../support/bridge.ts'
import { BridgeProcess } from '../support/bridge-process.ts'
import { World } from '../support/world.ts'

const PRELOAD = new URL('./preload.ts', import.meta.url).href
const BASE = 'hub2mqtt'
/** The number of measurements. The one with the fewest functions counts, because timers add functions to some. */
const TAKES = 10
const MAX_ROUNDS = 50

const RAN = v.array(v.object({ name: v.string(), file: v.string(), at: v.number(), count: v.number() }))

export type Ran = v.InferOutput<typeof RAN>[number]

export interface Walk {
  /** The functions of the measurement with the fewest functions. */
  readonly ran: readonly Ran[]
  /** The numbers without anonymous functions (`named`) and with them (`all`). */
  readonly named: { readonly functions: number; readonly files: number }
  readonly all: { readonly functions: number; readonly files: number }
}

export type Walks = Readonly<Record<'usage' | 'get-settings' | 'restart' | 'crash' | 'guarded crash', Walk>>

/** Measures everything with the default configuration, and a crash also with the guardian on. */
export async function takeWalks(): Promise<Walks> {
  const plain = await onBridge({}, async ({ usage, getSettings, restart, crash }) => ({
    usage: await usage(),
    'get-settings': await getSettings(),
    restart: await restart(),
    crash: await crash(),
  }))
  // Do not measure at the same time: on a busy machine, timers run during the measurements.
  const guardedCrash = await onBridge({ GUARD_WATCH: '*' }, ({ crash }) => crash())
  return { ...plain, 'guarded crash': guardedCrash }
}

type Take = () => Promise<Walk>

/** Starts a bridge, and makes the measurements that `take` requests. */
async function onBridge<T>(
  env: Readonly<Record<string, string>>,
  take: (takes: { usage: Take; getSettings: Take; restart: Take; crash: Take }) => Promise<T>,
): Promise<T> {
  const run = (all: typeof env) =>
    new BridgeProcess({
      preload: [PRELOAD],
      channel: true,
      env: { NODE_DISABLE_COMPILE_CACHE: '1', ...variables(all) },
    })
  // Periodic reads would add functions to the measurements.
  const rarely = { HUB_POLL_INTERVAL: '10m', HTTP_PORT: '0' }
  await using world = await World.with(run, { hub: { flavour: 'newer' }, env: { ...rarely, ...env } })
  const { hub, observer, bridge, app } = world
  const topic = `${BASE}/home/app/${app}`
  await observer.until('the app', () => observer.last(topic), 30_000)

  const published = async (what: string, on: string, act: () => unknown) => {
    const before = observer.texts(on).length
    await act()
    await observer.until(what, () => observer.texts(on).length > before)
  }
  const answered = (command: string) => () =>
    published(`the answer to ${command}`, `${BASE}/home/app/${app}/result/${command}`, () =>
      observer.publish(`${topic}/cmd/${command}`, ''),
    )
  const usage = (round: number) =>
    published('usage', topic, () => hub.change(app, { usage: { cpu: 0.01, mem: (round + 50) * 2 ** 20 } }))
  const crash = () => published('the crash', `${topic}/event`, () => hub.crash(app, 'Error: oh'))
  const recover = () => published('the recovery', `${topic}/event`, () => hub.recover(app))
  return await take({
    usage: () => leastOf(usage, bridge),
    getSettings: () => leastOf(answered('get-settings'), bridge),
    restart: () => leastOf(answered('restart'), bridge),
    crash: () => leastOf(crash, bridge, recover),
  })
}

/** Repeats a measurement, and returns the one with the fewest functions. `undo` restores the state after each. */
async function leastOf(
  act: (round: number) => Promise<void>,
  bridge: BridgeProcess,
  undo?: () => Promise<void>,
): Promise<Walk> {
  const takes: (readonly Ran[])[] = []
  for (let round = 0; takes.length < TAKES; round += 1) {
    if (round > MAX_ROUNDS) throw new Error('too few complete takes')
    await take(bridge)
    await act(round)
    const ran = await take(bridge)
    await undo?.()
    // Skip the first round, which includes one-time initialization, and rounds that lack the final acknowledgement.
    if (round > 0 && ran.some(isEnd)) takes.push(ran)
  }
  const [ran = []] = takes.sort((one, other) => one.length - other.length)
  return { ran, named: count(ran.filter((one) => one.name !== '')), all: count(ran) }
}

const isEnd = ({ file, name }: Ran) => file === 'mqtt/sender.ts' && name === '#acked'

const take = async (bridge: BridgeProcess) => v.parse(RAN, await bridge.request({ depth: true }))

const count = (ran: readonly Ran[]) => ({ functions: ran.length, files: new Set(ran.map(({ file }) => file)).size })
