import { setTimeout as after } from 'node:timers/promises'
import type { BehaviourName, BehaviourOptions } from '../../../src/emulator/hub.ts'
import { type Fault, type Faults, kindOf, networkOf, type Scene } from './fault.ts'

const HOLDS = { holds: ['hub'] } as const

const hub = kindOf({})
const network = networkOf('hubProxy')

function behaves<N extends BehaviourName>(
  name: N,
  options: (scene: Scene) => BehaviourOptions[N],
  [min, max]: readonly [number, number] = [800, 4000],
): Fault['run'] {
  return async (scene) => {
    scene.world.hub.behave(name, options(scene))
    await after(scene.random.int(min, max))
    scene.world.hub.behaveWell()
  }
}

/** Limits about half of the faults to a few requests, so that failures and successes alternate quickly. */
const some = ({ random }: Scene) => (random.chance(0.5) ? {} : { times: random.int(1, 8) })

/** Wraps a fault whose events may arrive after newer answers from the hub. */
const late =
  (run: Fault['run']): Fault['run'] =>
  async (scene) => {
    scene.world.watch.late = true
    await run(scene)
  }

const APP_WRITES = ['restartApp', 'setAppSetting', 'enableApp', 'disableApp', 'say'] as const
const NO_SUCCESS = [false, { success: false }, { status: 'error' }, { result: false }, [false]]

const hex = (random: Scene['random']) => random.int(0x1000, 0xffff).toString(16)

export const HUB_FAULTS: Faults = {
  'hub reboots': hub(({ world, random }) => world.hub.reboot({ downMs: random.int(100, 4000) }), HOLDS),
  'hub reboots with new firmware': hub(
    ({ world, random }) =>
      world.hub.reboot({ downMs: random.int(100, 2500), version: `13.${random.int(0, 99)}.${random.int(0, 99)}` }),
    HOLDS,
  ),
  'another hub at the address': hub(({ world, random }) => {
    world.watch.identityChanged = true
    const id = Array.from({ length: 6 }, () => hex(random)).join('')
    return world.hub.reboot({ downMs: random.int(100, 1500), id })
  }, HOLDS),
  'hub answers 500': hub(behaves('answer-status', (scene) => ({ status: 500, ...some(scene) }))),
  'hub answers 503': hub(behaves('answer-status', (scene) => ({ status: 503, ...some(scene) }))),
  'hub answers 429': hub(
    behaves(
      'answer-status',
      (scene) => ({ status: 429, retryAfter: scene.random.int(1, 4), ...some(scene) }),
      [500, 2500],
    ),
  ),
  'hub answers 401': hub(
    behaves('answer-status', () => ({ status: 401, times: 3 })),
    { agreeMs: 80_000, slow: true },
  ),
  'hub answers 403 to writes': hub(behaves('answer-status', () => ({ status: 403, operation: APP_WRITES }))),
  'hub is slow to answer': hub(
    behaves('slow-headers', ({ random }) => ({ ms: random.int(300, 2600) })),
    { stallMs: 500 },
  ),
  'hub drips': hub(
    behaves('dripping-body', ({ random }) => ({ ms: random.int(5, 60), bytes: random.int(1, 200) })),
    { stallMs: 500 },
  ),
  'hub never answers': hub(behaves('never-answer', some), { stallMs: 500 }),
  'hub executes and resets': hub(behaves('execute-then-reset', some)),
  'hub resets before executing': hub(behaves('reset-before-executing', some)),
  'hub cuts its JSON': hub(behaves('truncated-json', some)),
  'hub answers no JSON': hub(behaves('not-json', some)),
  'hub answers another shape': hub(behaves('wrong-shape', some)),
  'hub executes no write, with an unclear answer': hub(
    behaves('pretend', ({ random }) => ({ value: random.pick(NO_SUCCESS), operation: APP_WRITES })),
    // Exclude gateways at the same time: the bridge could not detect one that turns the refusal into a success.
    { holds: ['answers'] },
  ),
  'hub answers a part of its list (206)': hub(
    behaves('pretend', () => ({ status: 206, value: {}, operation: 'getApps' })),
  ),
  'hub answers 30 MB': hub(behaves('big-body', ({ random }) => ({ megabytes: 30, times: random.int(1, 3) }))),
  'hub behind a broken gateway': hub(behaves('gateway-page', () => ({ status: 502 }))),
  'hub answers an empty list once': hub(
    behaves('empty-list', () => ({ times: 1 })),
    { holds: ['list'] },
  ),
  'realtime refused': hub(behaves('refuse-handshake', ({ random }) => ({ status: random.pick([400, 500, 503]) }))),
  'realtime dropped immediately': hub(async (scene) => {
    scene.world.hub.dropRealtime('cut')
    await behaves('drop-realtime', () => ({}))(scene)
  }),
  'realtime silent': hub(behaves('realtime-silent', () => ({}))),
  'realtime hung': hub(late(behaves('realtime-hung', () => ({}), [1000, 6000]))),
  'realtime cut': hub(async ({ world, random }) => {
    for (let left = random.int(1, 4); left > 0; left -= 1) {
      world.hub.dropRealtime(random.pick(['cut', 'goodbye'] as const))
      await after(random.int(0, 1200))
    }
  }),
  'events lost': hub(behaves('lose-events', () => ({}))),
  'events doubled': hub(behaves('duplicate-events', () => ({}))),
  'events out of order': hub(late(behaves('reorder-events', () => ({})))),
  'hub connection reset': hub(network(({ world }) => world.hubProxy.reset(), [100, 900])),
  'hub half open': hub(
    network(({ world }) => world.hubProxy.pause(), [500, 5000]),
    { stallMs: 5500 },
  ),
  'hub receives nothing': hub(network(({ world }) => world.hubProxy.swallow('up'), [500, 5000])),
  'nothing arrives from the hub': hub(network(({ world }) => world.hubProxy.swallow('down'), [500, 5000])),
  'hub connection slow': hub(
    network(({ world, random }) => world.hubProxy.delay(random.int(50, 500))),
    { stallMs: 1500 },
  ),
  'hub connection in tiny pieces': hub(
    network(({ world, random }) => world.hubProxy.slice(random.int(1, 9))),
    { stallMs: 1000 },
  ),
}
