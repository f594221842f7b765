/** What arrives at a subscriber, and when; and the commands that are timed. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Observer, type Seen } from '../support/observer.ts'
import { now } from './processes.ts'

const STATE = /^hub2mqtt\/[^/]+\/app\/[^/]+$/
/** What else is retained of an app or a hub and follows from what the hub says. */
const FURTHER = /^hub2mqtt\/[^/]+\/(app\/[^/]+\/(update|setting\/[^/]+)|summary)$/
const DISCOVERY = /^homeassistant\//
const FIGURE = /"memory_bytes":(\d+)/
/** No device more for so long: discovery is complete. */
const QUIET_MS = 2500
const ANSWERS = `bench/${randomUUID()}`

export class Arrivals {
  /** App states: topic → when it was first seen. */
  readonly states = new Map<string, number>()
  readonly #discovery = new Set<string>()
  /** Live messages of those and of what else follows from them: 0 is the goal for a restart. */
  sent = { state: 0, discovery: 0 }
  /** When a topic of discovery was last seen for the first time; 0: never. */
  #discoveredAt = 0
  /** When `online` was seen. */
  online: number | undefined
  #observer: Observer | undefined
  readonly #answers = new Map<string, () => void>()
  #awaited = new Set<number>()
  #complete: (moment: number) => void = () => {}
  #asked = 0

  /** Looks on at a broker from now on. Messages come by the million: none of them is kept. */
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
    } else if (FURTHER.test(topic)) this.sent.state += retain ? 0 : 1
    else if (topic === 'hub2mqtt/bridge/state' && !retain && text === 'online') this.online ??= now()
  }

  #receiveState(topic: string, text: string, retain: boolean): void {
    if (!this.states.has(topic)) this.states.set(topic, now())
    if (!retain) this.sent.state += 1
    if (this.#awaited.size === 0) return
    const figure = Number(FIGURE.exec(text)?.[1])
    if (this.#awaited.delete(figure) && this.#awaited.size === 0) this.#complete(now())
  }

  /** Resolves with the moment at which all the figures have been seen. */
  sees(figures: ReadonlySet<number>): Promise<number> {
    this.#awaited = new Set(figures)
    return new Promise((resolve, reject) => {
      const lost = () => reject(new Error(`${this.#awaited.size} of ${figures.size} last values never arrived`))
      const patience = setTimeout(lost, 60_000)
      this.#complete = (moment) => {
        clearTimeout(patience)
        resolve(moment)
      }
    })
  }

  /** Resolves with the moment at which the states of `apps` apps and `online` had been seen. */
  async seesStates(apps: number, patienceMs = 60_000): Promise<number> {
    const deadline = now() + patienceMs
    while (this.online === undefined || this.states.size < apps) {
      if (now() > deadline) throw new Error(`only ${this.states.size} of ${apps} apps after ${patienceMs} ms`)
      await sleep(10)
    }
    return Math.max(this.online, newest(this.states))
  }

  /** Resolves with the moment at which the last of discovery was seen, if any, when no more comes. */
  async seesDiscovery(): Promise<number> {
    const began = now()
    while (Math.max(began, this.#discoveredAt) > now() - QUIET_MS) await sleep(20)
    return this.#discoveredAt
  }

  /** Sends a command and resolves with the milliseconds until its answer. */
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
