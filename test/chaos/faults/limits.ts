import { setTimeout as after } from 'node:timers/promises'
import { Observer, retainedOn } from '../../support/observer.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/until.ts'
import { appTopic } from '../commands.ts'
import { BASE, PUBLISHED_SETTING, publishedApps } from '../model.ts'
import type { World } from '../world.ts'
import { type Fault, type Faults, kindOf } from './fault.ts'

/** Time limit until the bridge is online. After several short connections, it waits up to ten seconds to reconnect. */
const ONLINE_MS = 45_000
/** Time limit if only one message may be in flight: each retained message and each command takes a round trip. */
const ONE_BY_ONE_MS = 150_000

const limit = kindOf({ hubWell: true, holds: ['broker', 'bridge'] })

/** For brokers with which the bridge cannot work. It retries only once a minute, because the user must act first. */
const UNSUITABLE = { slow: true, agreeMs: 90_000 } as const

interface LimitOptions {
  /** Whether the bridge can work with this broker. */
  readonly online: boolean
  /** Whether the broker starts without its data; default: random. */
  readonly forgets?: boolean
  /** Time limit until the bridge is online; default: 45 s. */
  readonly timeoutMs?: number
  /** Whether the broker delays messages. */
  readonly holdsBack?: boolean
  /** How long the bridge must stay online afterwards; default: no requirement. */
  readonly steadyMs?: number
}

export function broker(
  config: readonly string[],
  { online, forgets, timeoutMs = ONLINE_MS, holdsBack = false, steadyMs }: LimitOptions,
): Fault['run'] {
  return async ({ world, random }) => {
    await world.stopBroker()
    world.brokerHoldsBack = holdsBack
    if (forgets ?? random.chance(0.5)) await world.broker.forget()
    await world.configureBroker({ config })
    const since = Date.now()
    await world.startBroker()
    if (online) await untilOnline(world, since, config.join(', '), timeoutMs)
    await after(random.int(1000, 3000))
    if (steadyMs !== undefined) {
      await after(steadyMs)
      const times = world.watch.onlineAt.filter((at) => at >= since).length
      // The bridge may be online twice: after its start, and after it has found out which messages end the connection.
      if (times > 2) world.watch.object('kept offline', `online ${times} times with ${config.join(', ')}`)
    }
    await world.rebuildBroker()
  }
}

async function untilOnline(world: World, since: number, why: string, ms: number): Promise<void> {
  const isOnline = async () => {
    if (!world.bridge.alive || (world.watch.onlineAt.at(-1) ?? 0) > since) return true
    // Read the state from the broker, because the watcher misses messages if the broker accepts only small packets.
    const retained = await retainedOn(world.broker.port, world.watcherLogin).catch(() => undefined)
    return retained?.get(`${BASE}/bridge/state`) === 'online'
  }
  await until('online', isOnline, ms, CHECK_INTERVAL_MS).catch(() =>
    world.watch.object('kept offline', `not online ${ms} ms after the start of a broker with ${why}`),
  )
}

/** A long interval, because each check opens a connection. */
const CHECK_INTERVAL_MS = 500
const REQUESTS = 5
const BIG = 2 * 1024 * 1024

/** Replaces the broker with the embedded broker, and adds a setting that is too large for its messages. */
const embedded: Fault['run'] = async ({ world }) => {
  const { bridge } = world
  const [app = ''] = publishedApps
  await bridge.stop('SIGTERM')
  const port = await freePort()
  const own = world.startBridge({ MQTT_URL: '', MQTT_EMBEDDED_PORT: String(port) })
  const end = world.gateway.rule(({ method, path }) =>
    method === 'GET' && path.endsWith('/setting')
      ? { change: (answer) => ({ ...answer, text: JSON.stringify({ [PUBLISHED_SETTING]: 'x'.repeat(BIG) }) }) }
      : undefined,
  )
  try {
    await own.untilPort(port)
    await using observer = await Observer.on(port, { username: 'bridge', password: world.secrets.password })
    const has = (topic: string, count: number) => () => !own.alive || observer.texts(topic).length >= count
    const home = `${BASE}/home/state`
    await until(home, () => !own.alive || observer.last(home) === 'online', ONLINE_MS)
    const ping = `${BASE}/bridge/result/ping`
    const settings = appTopic(app, 'get-settings')
    for (let count = 1; count <= REQUESTS; count += 1) {
      await observer.publish(settings, '')
      await observer.publish(`${BASE}/bridge/cmd/ping`, '')
    }
    const answered = (topic: string) =>
      until(topic, has(topic, REQUESTS), ONLINE_MS).catch(() =>
        world.watch.object(
          'not answered',
          `${topic} with the embedded broker: ${observer.texts(topic).length} of ${REQUESTS}`,
        ),
      )
    await Promise.all([answered(settings.replace('/cmd/', '/result/')), answered(ping)])
  } finally {
    end()
    await own.stop('SIGTERM')
    world.startBridge()
  }
}

export const LIMITS: Faults = {
  'broker drops messages over 2,000 bytes': limit(broker(['message_size_limit 2000'], { online: true })),
  'broker ends connections over 4,096 bytes': limit(
    broker(['message_size_limit 4096', 'max_queued_messages 0'], { online: true, forgets: true, steadyMs: 15_000 }),
    { slow: true },
  ),
  'broker accepts packets of 2,000 bytes': limit(broker(['max_packet_size 2000'], { online: true })),
  'broker accepts one message at a time': limit(
    broker(['max_inflight_messages 1'], { online: true, timeoutMs: ONE_BY_ONE_MS, holdsBack: true }),
  ),
  'broker without retained messages': limit(broker(['retain_available false'], { online: false }), {
    expectedErrors: /retain/,
    ...UNSUITABLE,
  }),
  'broker supports only QoS 0': limit(broker(['max_qos 0'], { online: false }), {
    expectedErrors: /QoS/,
    ...UNSUITABLE,
  }),
  'answers beyond the embedded broker': limit(embedded, { alone: true }),
}
