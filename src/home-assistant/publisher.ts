/** Publishes the changes of wanted devices at a limited rate, and restores devices that other clients remove. */
import type { Clock } from '../base/clock.ts'
import { belongsTo, type DiscoveryTopics, type Form, parseDiscoveryTopic } from '../contract/discovery.ts'
import type { MqttLink } from '../mqtt/link.ts'
import type { PayloadSource } from '../mqtt/retained.ts'
import type { LinkStatus } from '../mqtt/types.ts'
import type { Device } from './device.ts'
import {
  MIGRATE,
  messagesOf,
  type Platforms,
  platformsIn,
  platformsOf,
  withFormerDefaults,
  withStubs,
} from './messages.ts'
import { newPacer } from './pacer.ts'

export type DiscoveryLink = Pick<MqttLink, 'hold' | 'send' | 'refresh' | 'sweep' | 'release'> & {
  status(): Pick<LinkStatus, 'queued'>
}

interface PublisherOptions {
  readonly link: DiscoveryLink
  readonly clock: Clock
  readonly topics: DiscoveryTopics
  readonly form: Form
  /** Number of devices per second after the first devices; 0 if only the broker limits the rate. */
  readonly rate: number
  /** Whether other work takes precedence over publishing; default: never. */
  readonly isBusy?: () => boolean
}

/** Publishing pauses while more messages than this are queued. */
const MANY_QUEUED = 256
/** How often to check whether publishing must still wait. */
const RECHECK_MS = 20

/** Number of devices that are published without delay, which is enough for an ordinary home. */
const AT_ONCE = 64
/** Home Assistant drops parts of a message that arrives while it is still processing the previous message. */
const REST_MS = 2_000
/** Time for Home Assistant to move entities from the topics of one form to those of the other form. */
const MIGRATION_MS = 5_000
/** Delay before republishing a device that a user deleted, because Home Assistant first removes all its entities. */
const RESTORE_MS = 3_000

type Messages = ReadonlyMap<string, string>

/** A published device, without the messages themselves, which are large. */
interface Published {
  readonly topics: readonly string[]
  readonly platforms: Platforms
}

export class Publisher {
  readonly #options: PublisherOptions
  readonly #pacer: ReturnType<typeof newPacer>
  /** Object id → function that creates the device on demand, because the messages of many apps use a lot of memory. */
  readonly #wanted = new Map<string, () => Device>()
  /** Object id → the device as published by this run. */
  readonly #published = new Map<string, Published>()
  /** Object id → the messages that the broker held when they were last read, by topic. */
  #found = new Map<string, Map<string, string>>()
  /** Devices to send again although nothing has changed, with only their discovery messages or also their states. */
  readonly #again = new Map<string, 'messages' | 'states'>()
  /** State topics that are not published again with their devices, because they have just been published. */
  #sent: ReadonlySet<string> = new Set()
  readonly #timers = new Set<() => void>()
  /** Devices that wait for the first connection, when their earlier topics are read; `undefined` from then on. */
  #waiting: Set<string> | undefined = new Set()
  readonly #source: PayloadSource = (topic) => {
    const { form, topics } = this.#options
    const device = this.#deviceOf(parseDiscoveryTopic(topic)?.objectId ?? '')
    return device && messagesOf(device, form, topics).get(topic)
  }

  constructor(options: PublisherOptions) {
    this.#options = options
    const { clock, rate } = options
    const task = (id: string) => this.#publish(id)
    const pace =
      rate === 0
        ? { atOnce: 0, perTurn: AT_ONCE, intervalMs: 0, busyMs: () => this.#waitMs }
        : { atOnce: AT_ONCE, perTurn: 1, intervalMs: 1_000 / rate }
    this.#pacer = newPacer({ clock, ...pace, restMs: REST_MS, task })
  }

  want(objectId: string, make: () => Device): void {
    this.#wanted.set(objectId, make)
    this.#request(objectId)
  }

  /** Removes a device after `delayMs`, unless it is wanted again by then. */
  withdraw(objectId: string, delayMs = 0): void {
    this.#wanted.delete(objectId)
    this.#request(objectId, delayMs)
  }

  /** Removes a device and all devices that belong to it, such as a hub's apps. */
  withdrawAll(objectId: string, delayMs = 0): void {
    for (const wanted of [...this.#wanted.keys()]) if (belongsTo(wanted, objectId)) this.withdraw(wanted, delayMs)
  }

  /** Stops managing a device and its dependent devices, and keeps their messages for the bridge that now owns them. */
  releaseAll(objectId: string): void {
    const topics = new Set<string>()
    for (const wanted of [...this.#wanted.keys(), ...this.#published.keys()]) {
      if (!belongsTo(wanted, objectId)) continue
      this.#wanted.delete(wanted)
      // Cancel the wait. Otherwise, the first connection would remove the device, which another bridge now owns.
      this.#waiting?.delete(wanted)
      for (const topic of this.#published.get(wanted)?.topics ?? []) topics.add(topic)
      this.#published.delete(wanted)
      this.#found.delete(wanted)
      this.#again.delete(wanted)
      this.#pacer.cancel(wanted)
    }
    this.#options.link.release((topic) => topics.has(topic))
  }

  /** Returns whether this run wants or still publishes a device under a prefix, whatever its topic is. */
  has(prefix: string, objectId: string): boolean {
    const isThere = this.#wanted.has(objectId) || this.#published.has(objectId)
    return isThere && prefix === this.#options.topics.prefix
  }

  /** Publishes everything except the states in `sent` again, slowly and in order, after Home Assistant has started. */
  publishAgain(sent: ReadonlySet<string> = new Set()): void {
    this.#sent = sent
    this.#pacer.slowDown()
    for (const objectId of this.#wanted.keys()) {
      this.#again.set(objectId, 'states')
      this.#request(objectId)
    }
  }

  /**
   * Reads the broker's discovery messages, and publishes the devices that wait for the first call. Call this for each
   * connection, and after messages were swept. Returns those that this run has not published: object id → topic →
   * payload.
   */
  readRetained(): ReadonlyMap<string, ReadonlyMap<string, string>> {
    const { link } = this.#options
    const found = new Map<string, Map<string, string>>()
    link.sweep((topic, payload) => {
      const objectId = parseDiscoveryTopic(topic)?.objectId
      if (objectId !== undefined) found.set(objectId, (found.get(objectId) ?? new Map()).set(topic, payload))
      return false
    })
    this.#found = found
    const waiting = this.#waiting
    this.#waiting = undefined
    for (const objectId of waiting ?? []) this.#request(objectId)
    return found
  }

  /** Restores a message of a device if another client has cleared it. */
  touched(topic: string, payload: string): void {
    const objectId = parseDiscoveryTopic(topic)?.objectId
    if (payload !== '' || objectId === undefined || !this.#published.get(objectId)?.topics.includes(topic)) return
    if (!this.#again.has(objectId)) this.#again.set(objectId, 'messages')
    this.#pacer.request(objectId, RESTORE_MS)
  }

  stop(): void {
    this.#pacer.stop()
    for (const cancel of this.#timers) cancel()
    this.#timers.clear()
  }

  #request(objectId: string, delayMs?: number): void {
    if (this.#waiting === undefined) this.#pacer.request(objectId, delayMs)
    else this.#waiting.add(objectId)
  }

  #publish(objectId: string): void {
    const { link, form, topics } = this.#options
    const before = this.#before(objectId)
    const device = this.#deviceOf(objectId, before)
    const after: Messages = device === undefined ? new Map() : messagesOf(device, form, topics)
    const platforms = platformsOf(device)
    this.#clearUnused(before.topics, after)
    for (const [topic, payload] of after) {
      const wasThere = form === 'device' && before.topics.includes(topic)
      const stubs = wasThere ? withStubs(before.platforms, platforms, payload) : undefined
      if (stubs !== undefined) {
        link.hold(topic, stubs)
        // Publish once more, without the components that the stubs remove.
        this.#pacer.request(objectId)
      } else link.hold(topic, payload, form === 'device' ? this.#source : undefined)
    }
    const again = this.#again.get(objectId)
    this.#again.delete(objectId)
    const states = again === 'states' ? [...statesOf(device)].filter((topic) => !this.#sent.has(topic)) : []
    if (again !== undefined) link.refresh([...after.keys(), ...states])
    if (device === undefined) this.#published.delete(objectId)
    else this.#published.set(objectId, { topics: [...after.keys()], platforms })
    this.#found.delete(objectId)
  }

  #deviceOf(objectId: string, before = this.#before(objectId)): Device | undefined {
    const device = this.#wanted.get(objectId)?.()
    return device && withFormerDefaults(device, before.platforms)
  }

  /** Returns the published state of a device, from this run or an earlier run. */
  #before(objectId: string): Published {
    const published = this.#published.get(objectId)
    if (published !== undefined) return published
    const found = this.#found.get(objectId) ?? new Map<string, string>()
    const { topics } = this.#options
    return { topics: [...found.keys()], platforms: platformsIn(found.get(topics.device(objectId)) ?? '') }
  }

  /** Milliseconds to wait because the broker's queue is full, or other work takes precedence. */
  get #waitMs(): number {
    const { link, isBusy } = this.#options
    return link.status().queued > MANY_QUEUED || isBusy?.() ? RECHECK_MS : 0
  }

  /** Clears topics that a device no longer uses, after moving the entities from topics of the other form. */
  #clearUnused(before: readonly string[], after: Messages): void {
    const { link, topics, form, clock } = this.#options
    const leaving = before.filter((topic) => !after.has(topic))
    const migrating = leaving.filter((topic) => {
      const parsed = parseDiscoveryTopic(topic)
      return after.size > 0 && parsed?.prefix === topics.prefix && parsed.form !== form
    })
    for (const topic of leaving) if (!migrating.includes(topic)) link.hold(topic, null)
    if (migrating.length === 0) return
    for (const topic of migrating) link.send(topic, MIGRATE)
    const cancel = clock.after(MIGRATION_MS, () => {
      this.#timers.delete(cancel)
      for (const topic of migrating) link.hold(topic, null)
    })
    this.#timers.add(cancel)
  }
}

/** Returns the retained topics that a device's entities read. */
function statesOf(device: Device | undefined): Set<string> {
  const topics = new Set<string>()
  for (const { component } of device?.components.values() ?? []) {
    if (typeof component['state_topic'] === 'string') topics.add(component['state_topic'])
  }
  return topics
}
