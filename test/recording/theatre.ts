/** The surroundings of a scenario: broker, hubs, bridge and the three clients, and when they have all come to rest. */
import type { IClientPublishOptions } from 'mqtt'
import { Client } from './client.ts'
import { SteppedClock } from './clock.ts'
import type { SteppedHub } from './hub.ts'
import { fold, normalise, pack, type Recording, type Seen, type Stage, seenOf, sorted } from './record.ts'
import { type Bridge, type Broker, type BrokerKind, startBridge, startBroker, until } from './subject.ts'

export type HubName = 'home' | 'attic'

/** What only the recorder says; nothing of it is recorded. */
const MARKER = 'recorder/marker'
const PING = 'hub2mqtt/bridge/cmd/ping'
const PONG = 'hub2mqtt/bridge/result/ping'
const PATIENCE_MS = 30_000
const MINUTE_MS = 60_000
/** The bridge has come to rest when so many round trips through it in a row brought nothing else. */
const QUIET_ROUNDS = 3
/** aedes sends retained messages beside live ones, so that more round trips must find none. */
const RETAINED_ROUNDS = 5
/** A wait this long belongs to what the scenario waits for; longer ones are for `pass`. */
const NEAR_MS = 5_000
/** No wait is made of more steps. */
const MAX_STEPS = 200
/** Until discovery would publish the same device again. */
const DISCOVERY_RESTS_MS = 2_500

const STATE = 'hub2mqtt/bridge/state'
const PROBE = 'hub2mqtt/bridge/probe'

/**
 * Topics of which it does not count how often the same was said in a row: the bridge repeats its probe until one comes
 * back, as many as it has subscriptions, and greets other bridges every minute.
 */
const COUNTLESS: ReadonlySet<string> = new Set([PROBE, 'hub2mqtt/bridge/presence'])

export class Theatre implements AsyncDisposable {
  readonly kind: BrokerKind
  readonly broker: Broker
  readonly hubs: Readonly<Record<HubName, SteppedHub>>
  readonly clock = new SteppedClock()
  /** Sees everything, from before the start. */
  readonly watcher: Client
  /** Sends the commands, and sees their answers. */
  readonly asker: Client
  readonly #stages: Stage[] = []
  readonly #from = new Map<Client, number>()
  #retained = new Map<string, Seen>()
  #bridge: Bridge | undefined
  #markers = 0

  private constructor(
    kind: BrokerKind,
    broker: Broker,
    hubs: Readonly<Record<HubName, SteppedHub>>,
    clients: { readonly watcher: Client; readonly asker: Client },
  ) {
    this.kind = kind
    this.broker = broker
    this.hubs = hubs
    this.watcher = clients.watcher
    this.asker = clients.asker
  }

  static async open(kind: BrokerKind, hubs: Readonly<Record<HubName, SteppedHub>>): Promise<Theatre> {
    const broker = await startBroker(kind)
    const join = (id: string, ...filters: string[]) => Client.connect({ url: broker.url, broker: kind, id, filters })
    const watcher = await join('watcher', '#')
    const asker = await join('asker', 'recorder/#', 'hub2mqtt/+/result/#', 'hub2mqtt/+/app/+/result/#')
    return new Theatre(kind, broker, hubs, { watcher, asker })
  }

  /** Starts the bridge, and waits until it says that it is online; its hubs may keep it waiting. */
  async start(config: object): Promise<void> {
    await this.startsOver(() => {
      this.#bridge = startBridge(config, this.clock)
    })
  }

  async stop(): Promise<void> {
    const bridge = this.#bridge
    this.#bridge = undefined
    await bridge?.stop()
    await this.rest()
  }

  /** Then waits until devices that changed have been published. */
  async reload(config: object): Promise<void> {
    this.#bridge?.reload(config)
    await this.pass(DISCOVERY_RESTS_MS)
  }

  /** Says something that is no command, from outside, for good or for the moment. */
  async say(topic: string, payload: string, { retain }: { readonly retain: boolean }): Promise<void> {
    await this.asker.publish(topic, payload, { retain })
    await this.rest()
  }

  until(what: string, probe: () => boolean | undefined): Promise<boolean> {
    return until(what, probe, PATIENCE_MS)
  }

  /** Waits until the last message of a topic says what is expected. */
  async shows(topic: string, text: string): Promise<void> {
    await this.reach(`${text} on ${topic}`, () => this.watcher.last(topic)?.includes(text))
  }

  /** Lets a hub answer that has been held since before the bridge met it; ends with its realtime channel up. */
  async meet(name: HubName): Promise<void> {
    const hub = this.hubs[name]
    // One question after the other: else what is published in between depends on which answer is sooner.
    for (const question of ['ping', 'getApps', 'getApps'] as const) {
      await this.reach(`${question} of ${name}`, () => hub.isAsked(question))
      hub.release()
    }
    await this.shows(`hub2mqtt/${name}/info`, '"connected"')
    hub.open()
  }

  /** Sends a command, waits for its answer and for what follows from it. */
  async ask(topic: string, payload: string | Buffer = '', options: IClientPublishOptions = {}): Promise<void> {
    await this.waitFor(topic, options, () => this.asker.publish(`hub2mqtt/${topic}`, payload, options))
  }

  /** Waits for the answer to a command that `send` brings about. */
  async waitFor(topic: string, options: IClientPublishOptions, send: () => Promise<void>): Promise<void> {
    const before = this.#answers(topic, options)
    await send()
    await this.until(`an answer to ${topic}`, () => this.#answers(topic, options) > before)
    await this.rest()
  }

  #answers(topic: string, { properties }: IClientPublishOptions): number {
    const result = `hub2mqtt/${topic.replace(/(^|\/)cmd(?=\/|$)/, '$1result')}`
    const reply = properties?.responseTopic
    return this.asker.seen.filter((packet) => packet.topic === result || packet.topic === reply).length
  }

  /** Takes an app through its states, one at a time. */
  async walk(name: HubName, steps: number): Promise<void> {
    for (let step = 0; step < steps; step += 1) {
      this.hubs[name].step()
      await this.rest()
    }
  }

  /** Lets time pass, from one timer to the next that is near, until something is so; always at rest in between. */
  async reach(what: string, probe: () => boolean | undefined): Promise<void> {
    for (let steps = 0; !probe(); steps += 1) {
      if (steps === MAX_STEPS) throw new Error(`${what} is not reached`)
      await this.rest()
      if (this.clock.next <= NEAR_MS) this.clock.jump(Math.max(0, this.clock.next))
    }
    await this.rest()
  }

  /** Brings everything forward that falls due within `ms`, one timer at a time. */
  async pass(ms: number): Promise<void> {
    const end = this.clock.elapsed() + ms
    for (;;) {
      await this.rest()
      const left = end - this.clock.elapsed()
      this.clock.jump(Math.max(0, Math.min(left, this.clock.next)))
      if (left <= 0) break
    }
    await this.rest()
  }

  /** Resolves when nothing is on its way any more: between hubs and bridge, and between bridge, broker and clients. */
  async rest(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_ROUNDS; ) {
      const before = this.#activity
      await this.until('no timer to be due', () => !this.clock.busy)
      await this.#roundTrip()
      quiet = this.#activity === before ? quiet + 1 : 0
    }
  }

  get #activity(): number {
    const hubs = Object.values(this.hubs).reduce((sum, { activity }) => sum + activity, 0)
    return hubs + this.watcher.seen.filter((packet) => !isMarker(packet)).length
  }

  async #roundTrip(): Promise<void> {
    this.#markers += 1
    const marker = `"recorder-${this.#markers}"`
    const [to, from] = this.#bridge === undefined ? [MARKER, MARKER] : [PING, PONG]
    await this.asker.publish(to, `{"transaction":${marker}}`)
    const back = (client: Client) => client.last(from)?.includes(marker)
    await this.until('a round trip', () => back(this.watcher) && back(this.asker))
  }

  /** Waits until the bridge has connected anew, which `cause` makes it do. */
  async startsOver(cause: () => void): Promise<void> {
    const before = this.watcher.texts(PROBE).length
    const said = this.watcher.texts(STATE).length
    cause()
    await this.until('another connection', () => {
      return this.watcher.texts(PROBE).length > before && this.watcher.texts(STATE).slice(said).at(-1) === 'online'
    })
    await this.rest()
  }

  /** One part of the scenario, recorded under its name. Of the topics in `lastOnly` only the last message counts. */
  async stage(name: string, play: () => Promise<void>, lastOnly: readonly string[] = []): Promise<void> {
    this.clock.setForward(MINUTE_MS)
    await play()
    await this.pass(DISCOVERY_RESTS_MS)
    const live = { watcher: this.#cut(this.watcher, lastOnly), asker: this.#cut(this.asker, lastOnly) }
    const retained = await this.#takeDown()
    this.#stages.push({ name, live, retained: changes(this.#retained, retained) })
    this.#retained = retained
  }

  recording(): Recording {
    return pack(this.kind, this.#stages)
  }

  /** What a client has seen since the stage before, by topic. */
  #cut(client: Client, lastOnly: readonly string[]): Record<string, Seen[]> {
    const packets = client.seen.slice(this.#from.get(client) ?? 0).filter((packet) => !isMarker(packet))
    this.#from.set(client, client.seen.length)
    const topics = Map.groupBy(packets, ({ topic }) => topic)
    return sorted(
      [...topics].map(([topic, all]) => {
        const seen = all.map((packet) => seenOf(packet, this.#text))
        return [topic, fold(lastOnly.includes(topic) ? seen.slice(-1) : seen, COUNTLESS.has(topic))] as const
      }),
    )
  }

  /** What a client finds that comes now. */
  async #takeDown(): Promise<Map<string, Seen>> {
    const { url } = this.broker
    await using latecomer = await Client.connect({ url, broker: this.kind, id: 'latecomer', filters: ['#'] })
    const found = () => latecomer.seen.filter(({ retain }) => retain)
    for (let quiet = 0, round = 0, before = -1; quiet < RETAINED_ROUNDS; round += 1) {
      await latecomer.publish(MARKER, String(round))
      await this.until('the end of what is retained', () => latecomer.last(MARKER) === String(round))
      quiet = found().length === before ? quiet + 1 : 0
      before = found().length
    }
    // The watcher and the asker have seen these markers too.
    return new Map(found().map((packet) => [packet.topic, seenOf(packet, this.#text)]))
  }

  #text = (payload: string) => {
    const addresses = Object.entries(this.hubs).map(
      ([name, { emulated }]) => [`127.0.0.1:${emulated.port}`, name] as const,
    )
    return normalise(payload, new Map(addresses.map(([address, name]) => [address, `address of ${name}`])))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#bridge?.stop()
    await this.watcher[Symbol.asyncDispose]()
    await this.asker[Symbol.asyncDispose]()
    await this.broker[Symbol.asyncDispose]()
    for (const hub of Object.values(this.hubs)) await hub[Symbol.asyncDispose]()
  }
}

function isMarker({ topic, payload }: { readonly topic: string; readonly payload: string | Buffer }): boolean {
  return topic === MARKER || ((topic === PING || topic === PONG) && payload.toString().includes('"recorder-'))
}

/** Topics that hold something else than before, or nothing any more. */
function changes(before: ReadonlyMap<string, Seen>, after: ReadonlyMap<string, Seen>): Record<string, Seen | null> {
  const topics = [...new Set([...before.keys(), ...after.keys()])]
  const changed = topics.filter((topic) => JSON.stringify(before.get(topic)) !== JSON.stringify(after.get(topic)))
  return sorted(changed.map((topic) => [topic, after.get(topic) ?? null] as const))
}
