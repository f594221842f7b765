/** The subscriber and asker: looks at what arrives, and when, and sends commands. */
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { type IPublishPacket, MqttClient } from 'mqtt'
import { now, sleep } from './processes.ts'

const STATE = /^hub2mqtt\/[^/]+\/app\/[^/]+$/
/** What else is retained of an app or a hub and follows from what the hub says. */
const FURTHER = /^hub2mqtt\/[^/]+\/(app\/[^/]+\/(update|setting\/[^/]+)|summary)$/
const DISCOVERY = /^homeassistant\//
const FIGURE = /"memory_bytes":(\d+)/
/** No device more for so long: discovery is complete. */
const QUIET_MS = 2500
const ANSWERS = `bench/${randomUUID()}`

export class Observer implements AsyncDisposable {
  /** App states and discovery: topic → when it was first seen. */
  readonly states = new Map<string, number>()
  readonly discovery = new Map<string, number>()
  /** Live messages of those and of what else follows from them: 0 is the goal for a restart. */
  sent = { state: 0, discovery: 0 }
  /** When `online` was seen. */
  online: number | undefined
  readonly #client: MqttClient
  readonly #answers = new Map<string, () => void>()
  #awaited = new Set<number>()
  #complete: (moment: number) => void = () => {}
  #asked = 0

  private constructor(client: MqttClient) {
    this.#client = client
    client.on('message', (topic, payload, packet) => this.#receive(topic, payload, packet))
  }

  static async on(url: string): Promise<Observer> {
    const { hostname, port } = new URL(url)
    const client = new MqttClient(() => connect({ host: hostname, port: Number(port), noDelay: true }), {
      clientId: `bench-${randomUUID()}`,
      protocolVersion: 5,
      reconnectPeriod: 0,
    })
    const observer = new Observer(client)
    await new Promise<void>((resolve, reject) => client.once('connect', () => resolve()).once('error', reject))
    await client.subscribeAsync(['hub2mqtt/#', 'homeassistant/#', `${ANSWERS}/#`], { qos: 0 })
    return observer
  }

  #receive(topic: string, payload: Buffer, { retain }: IPublishPacket): void {
    const answered = this.#answers.get(topic)
    if (answered !== undefined) answered()
    else if (STATE.test(topic)) this.#receiveState(topic, payload, retain)
    else if (DISCOVERY.test(topic)) {
      if (!this.discovery.has(topic)) this.discovery.set(topic, now())
      if (!retain) this.sent.discovery += 1
    } else if (FURTHER.test(topic)) this.sent.state += retain ? 0 : 1
    else if (topic === 'hub2mqtt/bridge/state' && !retain && payload.toString() === 'online') this.online ??= now()
  }

  #receiveState(topic: string, payload: Buffer, retain: boolean): void {
    if (!this.states.has(topic)) this.states.set(topic, now())
    if (!retain) this.sent.state += 1
    if (this.#awaited.size === 0) return
    const figure = Number(FIGURE.exec(payload.toString())?.[1])
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
  async seesStates(apps: number): Promise<number> {
    const deadline = now() + 60_000
    while (this.online === undefined || this.states.size < apps) {
      if (now() > deadline) throw new Error(`only ${this.states.size} of ${apps} apps after a minute`)
      await sleep(10)
    }
    return Math.max(this.online, newest(this.states))
  }

  /** Resolves with the moment at which the last of discovery was seen, if any, when no more comes. */
  async seesDiscovery(): Promise<number> {
    const began = now()
    while (Math.max(began, newest(this.discovery)) > now() - QUIET_MS) await sleep(20)
    return newest(this.discovery)
  }

  /** Sends a command and resolves with the milliseconds until its answer. */
  ask(topic: string): Promise<number> {
    this.#asked += 1
    const responseTopic = `${ANSWERS}/${this.#asked}`
    const correlationData = Buffer.from(String(this.#asked))
    const started = now()
    return new Promise((resolve) => {
      this.#answers.set(responseTopic, () => {
        this.#answers.delete(responseTopic)
        resolve(now() - started)
      })
      this.#client.publish(topic, '', { qos: 1, properties: { responseTopic, correlationData } })
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return new Promise((resolve) => this.#client.end(true, () => resolve()))
  }
}

const newest = (seen: ReadonlyMap<string, number>): number => {
  let moment = 0
  for (const at of seen.values()) moment = Math.max(moment, at)
  return moment
}
