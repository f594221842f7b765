/** A subscriber that records when messages arrive, and sends timed commands. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Observer, type Seen } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { now } from './processes.ts'

const STATE = /^hub2mqtt\/[^/]+\/app\/[^/]+$/
/** Retained topics, other than the states of apps, that depend on the hub's data. */
const DERIVED = /^hub2mqtt\/[^/]+\/(app\/[^/]+\/(update|setting\/[^/]+)|summary)$/
const DISCOVERY = /^homeassistant\//
const FIGURE = /"memory_bytes":(\d+)/
/** Discovery is complete when no new device has arrived for this long. */
const QUIET_MS = 2500
const ANSWERS = `bench/${randomUUID()}`

export class Arrivals {
  /** App states: topic → the time of the first message. */
  readonly states = new Map<string, number>()
  readonly #discovery = new Set<string>()
  /** The numbers of live messages: `state` includes the topics that match `DERIVED`. */
  sent = { state: 0, discovery: 0 }
  /** The time at which the newest discovery topic first appeared; 0 if there is none. */
  #discoveredAt = 0
  online: number | undefined
  #observer: Observer | undefined
  readonly #answers = new Map<string, () => void>()
  #awaited = new Set<number>()
  #complete: (moment: number) => void = () => {}
  #asked = 0

  /** Subscribes to everything on a broker, without keeping the messages, because millions may arrive. */
  async at(port: number): Promise<Observer> {
    const filter = ['hub2mqtt/#', 'homeassistant/#', `${ANSWERS}/#`]
    const onMessage = (seen: Seen) => this.#receive(seen)
    this.#observer = await Observer.on(port, { protocol: '5', filter, qos: 0, keeps: false, onMessage })
    return this.#observer
  }

  #receive({ topic, text, retain }: Seen): void {
    const answered = this.#answers.get(topic)
    if (answered !== undefined) answered()
    else if (STATE.test(topic)) this.#receiveState(topic, text, retain)
    else if (DISCOVERY.test(topic)) {
      if (!this.#discovery.has(topic)) this.#discoveredAt = now()
      this.#discovery.add(topic)
      if (!retain) this.sent.discovery += 1
    } else if (DERIVED.test(topic)) this.sent.state += retain ? 0 : 1
    else if (topic === 'hub2mqtt/bridge/state' && !retain && text === 'online') this.online ??= now()
  }

  #receiveState(topic: string, text: string, retain: boolean): void {
    if (!this.states.has(topic)) this.states.set(topic, now())
    if (!retain) this.sent.state += 1
    if (this.#awaited.size === 0) return
    const figure = Number(FIGURE.exec(text)?.[1])
    if (this.#awaited.delete(figure) && this.#awaited.size === 0) this.#complete(now())
  }

  /** Waits for messages with these memory figures. Resolves with the time at which the last figure arrived. */
  sees(figures: ReadonlySet<number>): Promise<number> {
    this.#awaited = new Set(figures)
    return new Promise((resolve, reject) => {
      const lost = () => reject(new Error(`${this.#awaited.size} of ${figures.size} last values never arrived`))
      const timer = setTimeout(lost, 60_000)
      this.#complete = (moment) => {
        clearTimeout(timer)
        resolve(moment)
      }
    })
  }

  /** Waits for the states of all apps and `online`. Resolves with the time at which the last of them arrived. */
  async seesStates(apps: number, timeoutMs = 60_000): Promise<number> {
    const online = () => this.states.size >= apps && this.online
    return Math.max(await until(`the states of ${apps} apps`, online, timeoutMs, 10), newest(this.states))
  }

  /** Waits until discovery is complete. Resolves with the time at which the newest topic appeared; 0 without topics. */
  async seesDiscovery(): Promise<number> {
    const began = now()
    while (Math.max(began, this.#discoveredAt) > now() - QUIET_MS) await sleep(20)
    return this.#discoveredAt
  }

  /** Sends a command. Resolves with the time until its answer arrived, in milliseconds. */
  ask(topic: string): Promise<number> {
    this.#asked += 1
    const responseTopic = `${ANSWERS}/${this.#asked}`
    const correlationData = Buffer.from(String(this.#asked))
    const started = now()
    return new Promise((resolve, reject) => {
      this.#answers.set(responseTopic, () => {
        this.#answers.delete(responseTopic)
        resolve(now() - started)
      })
      this.#observer?.publish(topic, '', { properties: { responseTopic, correlationData } }).catch(reject)
    })
  }
}

const newest = (seen: ReadonlyMap<string, number>): number => {
  let moment = 0
  for (const at of seen.values()) moment = Math.max(moment, at)
  return moment
}
