/** Everything around one bridge: a hub in this process, a broker in another, a bad network between them, and who looks on. */
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { AnyWorld, type Parts } from '../support/any-world.ts'
import { BridgeProcess } from '../support/bridge-process.ts'
import { Mosquitto } from '../support/brokers.ts'
import { type Login, Observer, retainedOn } from '../support/observer.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { askedOf } from './asked.ts'
import type { History, Sent } from './history.ts'
import { agrees, BASE, type Disagreement, disagreement, HUB } from './model.ts'
import {
  type BrokerChanges,
  brokerOptions,
  environment,
  hubOptions,
  type Secrets,
  secretsOf,
  type WorldOptions,
} from './surroundings.ts'

type More = Pick<World, 'hubProxy' | 'brokerProxy' | 'onlineAt'>

export class World extends AnyWorld<EmulatedHub, BridgeProcess, Mosquitto> {
  readonly hubProxy: TcpProxy
  readonly brokerProxy: TcpProxy
  sent: Sent[] = []
  /** When the bridge said that it was online; not forgotten between episodes. */
  readonly onlineAt: number[]
  names = new Map<string, { name: string; at: number }[]>()
  readonly #options: WorldOptions
  readonly #secrets: Secrets
  readonly #env: Readonly<Record<string, string>>

  static async start(options: WorldOptions): Promise<World> {
    await using open = new AsyncDisposableStack()
    const secrets = secretsOf(options)
    const hub = open.use(await EmulatedHub.start(hubOptions(options, secrets)))
    const broker = open.use(await Mosquitto.start(brokerOptions(options, secrets)))
    const hubProxy = open.use(await TcpProxy.to(hub.port))
    const brokerProxy = open.use(await TcpProxy.to(broker.port))
    const onlineAt: number[] = []
    const observer = await Observer.on(broker.port, {
      protocol: '5',
      username: 'watcher',
      password: secrets.watcher,
      retainAsPublished: true,
      comesBack: true,
      onMessage({ topic, text, at }) {
        if (topic === `${BASE}/bridge/state` && text === 'online') onlineAt.push(at)
      },
    })
    const parts = { hub, broker, observer: open.use(observer) }
    return new World(parts, { hubProxy, brokerProxy, onlineAt }, options, open).keep(open)
  }

  private constructor(
    parts: Parts<EmulatedHub, Mosquitto>,
    { hubProxy, brokerProxy, onlineAt }: More,
    options: WorldOptions,
    open: AsyncDisposableStack,
  ) {
    super(parts, open)
    this.#options = options
    this.#secrets = secretsOf(options)
    this.hubProxy = hubProxy
    this.brokerProxy = brokerProxy
    this.onlineAt = onlineAt
    this.#env = environment(options, this.#secrets, {
      hub: this.hubAddress,
      broker: `127.0.0.1:${brokerProxy.port}`,
    })
    // One that hangs, or takes its time, ends too.
    open.defer(async () => {
      await Promise.all(this.bridges.map((bridge) => bridge.stop('SIGKILL')))
    })
  }

  /** Where the bridge finds the hub. */
  get hubAddress(): string {
    return `127.0.0.1:${this.hubProxy.port}`
  }

  get watcherLogin(): Login {
    return { username: 'watcher', password: this.#secrets.watcher }
  }

  /** A value that only settings hold. */
  get settingCanary(): string {
    return this.#secrets.setting
  }

  /** With changes to its configuration, if any. */
  startBridge(env: Readonly<Record<string, string>> = {}): BridgeProcess {
    const { preload = ['./preload/clock.ts'], nodeOptions = [] } = this.#options
    const bridge = new BridgeProcess({
      env: { ...this.#env, ...env },
      preload: preload.map((name) => new URL(name, import.meta.url).href),
      nodeOptions,
      channel: true,
    })
    this.bridges.push(bridge)
    return bridge
  }

  /** The program proper has begun, or ended: from here on a signal is its own to answer. */
  async started(): Promise<void> {
    const { bridge } = this
    await until(
      'the start of the bridge',
      () => !bridge.alive || bridge.lines.some((line) => line.includes('started')),
      20_000,
    )
  }

  /** Waits until all is well, the realtime channel included. */
  async calm(ms: number): Promise<void> {
    const deadline = performance.now() + ms
    while (!(this.realtimeIsUp && (await this.agrees().catch(() => false)))) {
      if (!this.bridge.alive) throw new Error(`the bridge ended: ${this.bridge.errors.join(' ')}`)
      if (performance.now() > deadline)
        throw new Error(`no calm within ${ms} ms: ${JSON.stringify(await this.disagreement())}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  /** Replaces the broker's configuration, users and basics kept; it counts from its next start. */
  async configureBroker(changes: BrokerChanges = {}): Promise<void> {
    await this.broker.configure(brokerOptions(this.#options, this.#secrets, changes))
  }

  /** Starts the broker; the bridge is let in only when the watcher is back, so that nothing is missed. */
  async startBroker(): Promise<void> {
    this.brokerProxy.refuse(true)
    await this.broker.run()
    await until('the watcher', () => this.observer.ready)
    this.brokerProxy.refuse(false)
  }

  /** Forgets what happened so far: a new episode. */
  forget(): void {
    this.observer.forget()
    this.hub.forgetRequests()
    this.sent = []
    this.names = new Map()
    this.bridges.splice(0, this.bridges.length - 1)
    this.brokerProxy.links.splice(
      0,
      this.brokerProxy.links.length,
      ...this.brokerProxy.links.filter((one) => one.closedAt === undefined),
    )
    for (const { lines, errors } of this.bridges) for (const list of [lines, errors]) list.length = 0
  }

  /** How the broker differs, now, from what it has to hold. */
  async disagreement(): Promise<Disagreement> {
    const held = await retainedOn(this.broker.port, this.watcherLogin)
    return disagreement(held, this.hub, this.hubAddress)
  }

  async agrees(): Promise<boolean> {
    return agrees(await this.disagreement())
  }

  /** Whether the last word on a topic, as it was sent live or found stored, satisfies. */
  get realtimeIsUp(): boolean {
    const info = this.observer.seen.findLast(({ topic }) => topic === `${BASE}/${HUB}/info`)
    return this.hub.connections.subscribers > 0 && (info === undefined || info.text.includes('"realtime":"connected"'))
  }

  /** All that the checkers may know, as far as it has come. */
  history({ stallMs = 0, hubWell }: { readonly stallMs?: number; readonly hubWell: boolean }): History {
    return {
      sent: this.sent,
      seen: this.observer.seen,
      asked: askedOf(this.hub.requests),
      lives: this.bridges,
      links: this.brokerProxy.links,
      onlineAt: this.onlineAt,
      canaries: [this.#secrets.key, this.#secrets.password, this.#secrets.setting],
      names: this.names,
      stallMs,
      hubWasWell: hubWell,
    }
  }
}
