import { setTimeout as after } from 'node:timers/promises'
import { ErrorWithReasonCode, type IClientPublishOptions } from 'mqtt'
import type { Random } from '../support/random.ts'
import { type Draft, draft, type Subject } from './commands.ts'
import type { Sent } from './history.ts'
import type { World } from './world.ts'

/** The prefix of the ids of apps that the load installs and uninstalls. It uninstalls no other apps. */
const VISITOR = 'org.visitor'
const isVisitor = (id: string) => /^org\.visitor\d/.test(id)
const MAX_VISITORS = 6
const MIN_APPS = 10

let words = 0

export class Load {
  readonly #world: World
  readonly #random: Random
  /** Requests that earlier commands have caused. Repeating one would look like a repetition by the bridge. */
  readonly #requested = new Set<string>()
  readonly #underway = new Set<Promise<void>>()
  #running: Promise<void> | undefined
  #stopped = false

  constructor(world: World, random: Random) {
    this.#world = world
    this.#random = random
    // Avoid the requests of earlier commands, because these commands may still reach the hub.
    for (const { hubRequest } of world.earlier) if (hubRequest !== null) this.#claim(hubRequest)
    for (const id of world.hub.apps.keys()) this.#rename(id)
  }

  /** Sends commands and changes the hub, every `paceMs` on average. */
  start(paceMs: number): void {
    this.#running ??= this.#run(paceMs)
  }

  /** Resolves when the last message has reached the broker or was lost. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#running
    while (this.#underway.size > 0) await Promise.all(this.#underway)
  }

  /** Sends a random command once or several times. */
  command(): void {
    const subject = this.subject()
    if (subject === undefined) return
    const drafted = draft(subject)
    if (drafted.hubRequest !== null && !this.#claim(drafted.hubRequest)) return
    const random = this.#random
    const { payload, options, expiresAt, token } = this.#envelope(drafted)
    const kind = drafted.kind === 'good' && random.chance(0.06) ? 'retained' : drafted.kind
    if (drafted.shows !== undefined) this.#world.watch.expect(token, drafted.shows)
    const delays = [
      0,
      ...(random.chance(0.2) ? [random.int(0, 600)] : []),
      ...(random.chance(0.08) ? [random.int(0, 1500)] : []),
    ]
    for (const delay of kind === 'retained' ? [0] : delays) {
      this.#track(
        after(delay).then(() =>
          this.#send({ ...drafted, kind, expiresAt, token }, payload, { ...options, retain: kind === 'retained' }),
        ),
      )
    }
  }

  /** Chooses a random app for a command; `undefined` if the hub has no app. */
  subject(): Subject | undefined {
    const { hub, secrets } = this.#world
    if (hub.apps.size === 0) return undefined
    const random = this.#random
    return { hub, random, app: random.pick(this.#appIds()), word: this.#word(), canary: secrets.setting }
  }

  /**
   * Sends a command for a fault, unless an earlier command has caused the same request. Resolves with its token.
   * @param expiresAt in epoch milliseconds, for a draft whose payload is an object
   */
  async issue(drafted: Draft, expiresAt: number | null = null): Promise<string | undefined> {
    if (drafted.hubRequest !== null && !this.#claim(drafted.hubRequest)) return undefined
    const token = `tx-${this.#word()}`
    const { payload, kind, shows } = drafted
    if (shows !== undefined) this.#world.watch.expect(token, shows)
    const isBody = typeof payload === 'object' && !Buffer.isBuffer(payload)
    const expiry = expiresAt === null ? {} : { expires_at: expiresAt }
    const text = isBody ? JSON.stringify({ ...payload, transaction: token, ...expiry }) : payload
    const options = { properties: { correlationData: Buffer.from(token) } }
    await this.#send({ ...drafted, kind, token, expiresAt: isBody ? expiresAt : null }, text, options)
    return token
  }

  /** Sends a command whose token may have been used before. */
  async again(
    command: Pick<Draft, 'topic' | 'hubRequest' | 'write' | 'kind'> & Pick<Sent, 'token'>,
    payload: string | Buffer,
    properties: IClientPublishOptions['properties'] = {},
  ): Promise<void> {
    const options = { properties: { ...properties, correlationData: Buffer.from(command.token) } }
    await this.#send({ ...command, expiresAt: null }, payload, options)
  }

  changeHub(): void {
    const { hub } = this.#world
    const random = this.#random
    // Install apps, because commands uninstall apps, and later commands need some.
    while (hub.apps.size < MIN_APPS) this.#visit(false)
    const id = random.pick(this.#appIds())
    const silent = random.chance(0.15)
    const visitors = [...hub.apps.keys()].filter(isVisitor)
    const running = hub.apps.get(id)?.state === 'running'
    const changes: (() => void)[] = [
      () => this.#rename(id, silent),
      () => this.#rename(id, silent),
      () => (running ? hub.crash(id, `Error: ${this.#word()}`, { silent }) : hub.recover(id, { silent })),
      () => hub.change(id, { usage: { cpu: random.int(0, 99) / 100, mem: random.int(1e7, 9e7) } }, { silent }),
      () => {
        if (visitors.length < MAX_VISITORS) this.#visit(silent)
        else hub.uninstall(random.pick(visitors), { silent })
      },
      () => {
        if (visitors.length > 0) hub.uninstall(random.pick(visitors), { silent })
      },
    ]
    random.pick(changes)()
  }

  async #run(paceMs: number): Promise<void> {
    while (!this.#stopped) {
      if (this.#random.chance(0.6)) this.command()
      else this.changeHub()
      await after(this.#random.int(1, 2 * paceMs))
    }
  }

  async #send(
    command: Pick<Draft, 'topic' | 'hubRequest' | 'write'> & Pick<Sent, 'kind' | 'expiresAt' | 'token'>,
    payload: string | Buffer,
    options: IClientPublishOptions,
  ): Promise<void> {
    const { broker, brokerProxy, hasDirectBridge, observer, sent } = this.#world
    const { topic, hubRequest, write, kind, expiresAt, token } = command
    // Check the connections before sending, because a bridge that connects afterwards may receive the message. A broker
    // that hangs delivers the message later, perhaps to a bridge.
    const offline = brokerProxy.open === 0 && !broker.hung && !hasDirectBridge
    // Store the copy before sending it, because the hub may get the request before the broker acknowledges the message.
    const copy = { at: Date.now(), topic, hubRequest, write, kind, expiresAt, token, offline }
    sent.push(copy)
    // The fault may make the broker refuse or lose the message. A refused message does not count as sent.
    await observer.publish(topic, payload, options).catch((error: unknown) => {
      if (error instanceof ErrorWithReasonCode) sent.splice(sent.indexOf(copy), 1)
    })
  }

  #envelope({ payload, kind }: Draft) {
    const random = this.#random
    const token = `tx-${this.#word()}`
    const properties: IClientPublishOptions['properties'] = { correlationData: Buffer.from(token) }
    let expiresAt: number | null = null
    if (kind === 'good' && random.chance(0.15)) {
      const seconds = random.int(1, 3)
      if (!this.#world.brokerHoldsBack) {
        expiresAt = Date.now() + seconds * 1000
        properties.messageExpiryInterval = seconds
      }
    }
    if (random.chance(0.3)) properties.responseTopic = `answers/${token}`
    const options = { properties }
    if (typeof payload === 'string' || Buffer.isBuffer(payload)) return { token, expiresAt, options, payload }
    const body: Record<string, unknown> = { ...payload }
    if (random.chance(0.7)) body['transaction'] = token
    if (kind === 'good' && random.chance(0.25)) {
      const late = Date.now() + random.int(-1000, 4000)
      body['expires_at'] = random.chance(0.5) ? late : new Date(late).toISOString()
      expiresAt = Math.min(expiresAt ?? late, late)
    }
    return { token, expiresAt, options, payload: JSON.stringify(body) }
  }

  #claim(hubRequest: string): boolean {
    // Allow only one command that sets an app's state, because several could hide each other's effect.
    const claim = hubRequest.replace(/^(enableApp|disableApp|updateApp|installFromAppStore) /, 'state ')
    if (this.#requested.has(claim)) return false
    this.#requested.add(claim)
    return true
  }

  #rename(id: string, silent = false): void {
    const { hub, names } = this.#world
    const name = `name ${this.#word()}`
    const known = names.get(id) ?? []
    names.set(id, [...known, { name, at: Date.now(), silent }])
    hub.change(id, { name }, { silent })
  }

  #visit(silent: boolean): void {
    const id = `${VISITOR}${this.#word()}`
    this.#world.install({ id, name: `name ${id}`, settings: { secret: this.#world.secrets.setting } }, { silent })
  }

  #appIds(): readonly string[] {
    return [...this.#world.hub.apps.keys()]
  }

  #word(): string {
    words += 1
    return String(words)
  }

  #track(task: Promise<void>): void {
    this.#underway.add(task)
    void task.finally(() => this.#underway.delete(task))
  }
}
