/** A bridge and its environment: a hub in this process, a broker in another process, proxies, and an observer. */

import { rename, writeFile } from 'node:fs/promises'
import { setTimeout as after } from 'node:timers/promises'
import { type AppSeed, EmulatedHub, type How } from '../../src/emulator/hub.ts'
import { variables } from '../support/bridge.ts'
import { BridgeProcess } from '../support/bridge-process.ts'
import { Mosquitto } from '../support/brokers.ts'
import { HttpGateway } from '../support/http-gateway.ts'
import { type Login, Observer, retainedOn } from '../support/observer.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { temporaryFile } from '../support/temporary-file.ts'
import { until } from '../support/until.ts'
import { World as BridgeWorld, type Parts } from '../support/world.ts'
import type { AppName, Denial, History, Sent } from './history.ts'
import { hubRequestsOf } from './hub-requests.ts'
import { longestLag, waited } from './lag.ts'
import { agrees, BASE, type Disagreement, disagreement, HUB } from './model.ts'
import { underWay } from './sent.ts'
import {
  type BrokerChanges,
  brokerOptions,
  configFile,
  environment,
  type FileChanges,
  hubOptions,
  type Secrets,
  secretsOf,
  type WorldOptions,
} from './surroundings.ts'
import { Watch } from './watch.ts'

/** The maximum time that the checkers allow for processes that waited for a CPU. */
const MAX_WAITED_MS = 1_500
/** A lag shortly before an episode counts too, because of delayed effects such as a missed keep-alive. */
const LAG_LOOKBACK_MS = 3_000

type Env = Readonly<Record<string, string>>
type Own = Pick<World, 'gateway' | 'hubProxy' | 'brokerProxy' | 'watch' | 'secrets' | 'configPath'>

interface FaultProperties {
  readonly stallMs?: number
  readonly hubWell: boolean
  readonly expectedErrors?: RegExp | readonly RegExp[]
  readonly staysOnline?: boolean
}

const RELOADED = /configuration read again|invalid configuration/

export class World extends BridgeWorld<BridgeProcess, Mosquitto> {
  /** The gateway directly in front of the hub. */
  readonly gateway: HttpGateway
  /** The proxy between the bridge and the gateway. */
  readonly hubProxy: TcpProxy
  readonly brokerProxy: TcpProxy
  sent: Sent[] = []
  /** Commands of earlier episodes that may still reach the hub. */
  earlier: Sent[] = []
  readonly watch: Watch
  readonly secrets: Secrets
  readonly configPath: string
  denials: Denial[] = []
  jumps: { at: number; by: number }[] = []
  wallClockStepped = false
  /** Whether another bridge is connected to the broker without the proxy. */
  hasDirectBridge = false
  /** Whether the broker delays messages. Mosquitto drops the expiry of messages that it sends in their last second. */
  brokerHoldsBack = false
  excuses = new Set<string>()
  names = new Map<string, AppName[]>()
  #forgotAt = Date.now()
  /** Process id → how long the process had waited for a CPU when the episode began. */
  #waitedBefore: ReadonlyMap<number, number> = new Map()
  /** Bridges that are known to have started, even if their first log lines were discarded. */
  readonly #begun = new WeakSet<BridgeProcess>()

  /** Starts everything except the bridge. */
  static async prepare(options: WorldOptions): Promise<World> {
    await using open = new AsyncDisposableStack()
    const secrets = secretsOf(options)
    const hub = open.use(await EmulatedHub.start(hubOptions(options, secrets)))
    const broker = open.use(await Mosquitto.start(brokerOptions(secrets)))
    const gateway = open.use(await HttpGateway.to(hub.port))
    const hubProxy = open.use(await TcpProxy.to(gateway.port))
    const configPath = await temporaryFile(open, 'hub2mqtt.json', configFile())
    const brokerProxy = open.use(await TcpProxy.to(broker.port))
    const watch = new Watch(hub)
    const observer = await Observer.on(broker.port, {
      protocol: '5',
      username: 'watcher',
      password: secrets.watcher,
      retainAsPublished: true,
      reconnects: true,
      onMessage: (seen) => watch.take(seen),
    })
    const { preload = ['./preload/clock.ts'], nodeOptions = [] } = options
    const urls = preload.map((name) => new URL(name, import.meta.url).href)
    const run = (env: Env) =>
      new BridgeProcess({ env: variables(env), config: configPath, preload: urls, nodeOptions, channel: true })
    const env = environment(options, secrets, { hub: hubProxy.port, broker: brokerProxy.port })
    const own = { gateway, hubProxy, brokerProxy, watch, secrets, configPath }
    return new World({ hub, broker, observer: open.use(observer), ...own }, env, run, open.move())
  }

  private constructor(
    parts: Parts<Mosquitto> & Own,
    env: Env,
    run: (env: Env) => BridgeProcess,
    open: AsyncDisposableStack,
  ) {
    super(parts, env, run, open)
    this.gateway = parts.gateway
    this.hubProxy = parts.hubProxy
    this.brokerProxy = parts.brokerProxy
    this.watch = parts.watch
    this.secrets = parts.secrets
    this.configPath = parts.configPath
    // Use SIGKILL, which also terminates a bridge that hangs.
    open.defer(async () => {
      await Promise.all(this.bridges.map((bridge) => bridge.stop('SIGKILL')))
    })
  }

  get watcherLogin(): Login {
    return { username: 'watcher', password: this.secrets.watcher }
  }

  /** Replaces the configuration file atomically, because a starting bridge may read it. Writes a string unchanged. */
  async configure(changes: FileChanges | string = {}): Promise<void> {
    const path = `${this.configPath}.new`
    await writeFile(path, typeof changes === 'string' ? changes : configFile(changes))
    await rename(path, this.configPath)
  }

  /** Replaces the file and sends SIGHUP. Resolves when the bridge has logged the result or exited, or after 8 s. */
  async reload(changes: FileChanges | string = {}): Promise<void> {
    const { bridge } = this
    const reloads = () => bridge.lines.filter((line) => RELOADED.test(line)).length
    const before = reloads()
    await this.configure(changes)
    bridge.signal('SIGHUP')
    await until('the reload', () => !bridge.alive || reloads() > before, 8000).catch(() => undefined)
  }

  install(app: AppSeed, how?: How): void {
    this.watch.returns.created(app.id)
    this.hub.install(app, how)
  }

  /** Disconnects the bridge from the broker until the proxy heals. */
  cutOff(): void {
    this.brokerProxy.cut()
  }

  /** Publishes a retained message on any topic, as the harness. Repeats the publish until the broker accepts it. */
  async plant(topic: string, payload: string): Promise<void> {
    for (let tries = 0; tries < 400; tries += 1) {
      await until('the watcher', () => this.observer.ready, 20_000)
      this.watch.planting(topic, payload)
      const sent = await this.observer.publish(topic, payload, { retain: true }).then(
        () => true,
        () => false,
      )
      if (sent) return
      await after(50)
    }
    throw new Error(`${topic} cannot be published`)
  }

  /** Advances the clock and the timers of the bridge only. */
  jump(by: number): void {
    this.jumps.push({ at: Date.now(), by })
    // Excuse lost events, because the bridge may drop messages that have waited for more than a minute.
    this.excuses.add('time jumped')
    this.bridge.send({ jumpBy: by })
  }

  /** Stops the broker, which loses the messages that it has not delivered yet. */
  async stopBroker(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.excuses.add('the broker ended')
    await this.broker.stop(signal)
  }

  async repair(): Promise<void> {
    this.gateway.heal()
    this.hub.behaveWell()
    this.hubProxy.heal()
    this.brokerProxy.heal()
    this.bridge.output('resume')
    this.bridge.send({ clockBy: 0 })
    await this.configure()
  }

  /** Resolves when the bridge has exited, or has started and handles signals itself. */
  async started(): Promise<void> {
    const { bridge } = this
    const hasBegun = () => this.#begun.has(bridge) || bridge.lines.some((line) => line.includes('started'))
    await until('the start of the bridge', () => !bridge.alive || hasBegun(), 20_000)
    this.#begun.add(bridge)
  }

  /** Waits until the retained messages match the hub's state and the bridge is connected to hub, channel and broker. */
  async calm(ms: number): Promise<void> {
    const deadline = performance.now() + ms
    while (!(this.realtimeIsUp && this.#isConnected && (await this.disagreement().then(agrees, () => false)))) {
      const { alive, end, errors, lines } = this.bridge
      if (!alive) throw new Error(`the bridge ended with ${end}: ${errors.join(' ') || lines.at(-1)}`)
      if (performance.now() > deadline)
        throw new Error(`not settled within ${ms} ms: ${JSON.stringify(await this.disagreement())}`)
      await after(50)
    }
    this.#begun.add(this.bridge)
  }

  /** Returns whether the bridge is connected, according to the proxy. The broker's messages show a loss only later. */
  get #isConnected(): boolean {
    return this.brokerProxy.links.some(({ closedAt }) => closedAt === undefined)
  }

  /** Changes the broker's configuration. The changes take effect when the broker starts again. */
  async configureBroker(changes: BrokerChanges = {}): Promise<void> {
    await this.broker.configure(brokerOptions(this.secrets, changes))
  }

  async rebuildBroker(changes?: BrokerChanges): Promise<void> {
    await this.stopBroker()
    await this.configureBroker(changes)
    await this.startBroker()
  }

  /** Starts the broker. The bridge can connect only after the watcher, so that the watcher misses nothing. */
  async startBroker(): Promise<void> {
    this.brokerProxy.refuse(true)
    // When its connection ends, the watcher has received all earlier messages. The new broker may hold different ones.
    await until('the end of the connection', () => !this.observer.ready)
    this.watch.returns.forgetPublished()
    await this.broker.run()
    await until('the watcher', () => this.observer.ready)
    this.brokerProxy.refuse(false)
  }

  /** Must be called when a new episode starts. Discards the history. */
  forget(): void {
    this.#forgotAt = Date.now()
    this.earlier = underWay([...this.earlier, ...this.sent], this.#forgotAt)
    this.sent = []
    this.observer.forget()
    this.hub.forgetRequests()
    this.names = new Map()
    this.denials = []
    this.jumps = []
    this.wallClockStepped = false
    this.hasDirectBridge = false
    this.brokerHoldsBack = false
    this.excuses = new Set()
    this.watch.forget()
    this.bridges.splice(0, this.bridges.length - 1)
    this.brokerProxy.links.splice(
      0,
      this.brokerProxy.links.length,
      ...this.brokerProxy.links.filter((one) => one.closedAt === undefined),
    )
    for (const { lines, errors } of this.bridges) for (const list of [lines, errors]) list.length = 0
    this.#waitedBefore = this.#waits()
  }

  /** Returns how long each process that handles a command has waited for a CPU. */
  #waits(): Map<number, number> {
    const bridges = this.bridges.filter(({ alive }) => alive).map(({ pid }) => pid)
    const pids = [process.pid, this.broker.pid, ...bridges].filter((pid) => pid !== undefined)
    return new Map(pids.map((pid) => [pid, waited(pid)]))
  }

  async disagreement(): Promise<Disagreement> {
    const retained = await retainedOn(this.broker.port, this.watcherLogin)
    return disagreement(retained, this.hub, `127.0.0.1:${this.hubProxy.port}`, this.watch.foreign)
  }

  /** Whether the hub, and the latest `info` message if there is one, show a connected realtime channel. */
  get realtimeIsUp(): boolean {
    const info = this.observer.seen.findLast(({ topic }) => topic === `${BASE}/${HUB}/info`)
    return this.hub.connections.subscribers > 0 && (info === undefined || info.text.includes('"realtime":"connected"'))
  }

  history({ stallMs = 0, hubWell, expectedErrors, staysOnline = false }: FaultProperties): History {
    const excuses = new Set(this.excuses)
    const lagMs = longestLag(this.#forgotAt - LAG_LOOKBACK_MS)
    const waitedMs = [...this.#waits()].reduce((sum, [pid, ms]) => sum + ms - (this.#waitedBefore.get(pid) ?? 0), 0)
    // Excuse lost events, because a new bridge sends none for changes that occurred while it was starting.
    if (this.bridges.length > 1) excuses.add('another bridge')
    if (this.watch.identityChanged) excuses.add('another hub')
    return {
      planted: this.watch.planted,
      denials: this.denials,
      jumps: this.jumps,
      wallClockStepped: this.wallClockStepped,
      excuses,
      expectedErrors: expectedErrors === undefined ? [] : [expectedErrors].flat(),
      staysOnline,
      live: this.watch.violations,
      returned: this.watch.returned,
      sent: this.sent,
      earlier: this.earlier,
      seen: this.observer.seen,
      hubRequests: hubRequestsOf(this.hub.requests),
      lives: this.bridges,
      links: this.brokerProxy.links,
      onlineAt: this.watch.onlineAt,
      canaries: [this.secrets.key, this.secrets.password, this.secrets.setting],
      names: this.names,
      stallMs: stallMs + lagMs + Math.min(waitedMs, MAX_WAITED_MS),
      lagMs,
      hubWasWell: hubWell,
    }
  }
}
