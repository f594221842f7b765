/** Compares messages with the hub's state at the moment when they arrive. */
import type { EmulatedHub } from '../../src/emulator/hub.ts'
import type { Seen } from '../support/observer.ts'
import { isAnswer, parseAnswer, tokenOf } from './answers.ts'
import { DEVICE, references } from './discovery.ts'
import type { LiveChecker, Violation } from './history.ts'
import { APPS, BASE, idOf } from './model.ts'
import { Returns } from './returns.ts'

/** The discovery topic of a device whose hub does not identify itself. */
const NAMELESS = /\/hub2mqtt---20[^/]*\/config$/

/** Returns `true` if the hub shows the effect of a command. */
export type Shows = (hub: EmulatedHub) => boolean

export class Watch {
  readonly violations: Violation[] = []
  /** Messages that the harness has published on topics of the bridge. */
  readonly planted = new Set<Seen>()
  readonly foreign = new Set<string>()
  /** The times at which the bridge published that it was online; kept between episodes. */
  readonly onlineAt: number[] = []
  /** Whether the configuration excludes some apps, including new ones, for some time. */
  leavesOut = false
  /** Whether a different hub has replaced the first one. The first hub's messages may then be cleared and come back. */
  identityChanged = false
  /** Whether the bridge has received outdated lists, and may have published them. */
  outdated = false
  /** Whether events may have arrived after newer answers from the hub. */
  late = false
  readonly returns: Returns
  readonly #returned: string[] = []
  readonly #hub: EmulatedHub
  readonly #expected = new Map<string, Shows>()
  readonly #planting = new Map<string, number>()
  readonly #devices = new Map<string, string>()

  constructor(hub: EmulatedHub) {
    this.#hub = hub
    this.returns = new Returns(hub)
  }

  /** Apps that were published again although the hub did not have them and the fault does not explain it. */
  get returned(): readonly string[] {
    return this.identityChanged || this.outdated || this.late ? [] : this.#returned
  }

  object(checker: LiveChecker, what: string): void {
    this.violations.push({ checker, what })
  }

  /** Sets what the hub must show when the command with this token is answered `ok`. */
  expect(token: string, shows: Shows): void {
    this.#expected.set(token, shows)
  }

  /** Must be called before the harness publishes the message. */
  planting(topic: string, text: string): void {
    const key = `${topic}\n${text}`
    this.#planting.set(key, (this.#planting.get(key) ?? 0) + 1)
  }

  /** Must be called when a new episode starts. Clears everything except the known devices and `onlineAt`. */
  forget(): void {
    this.violations.length = 0
    this.#returned.length = 0
    this.returns.forget()
    this.planted.clear()
    this.foreign.clear()
    this.leavesOut = false
    this.identityChanged = false
    this.outdated = false
    this.late = false
    this.#expected.clear()
    this.#planting.clear()
  }

  take(seen: Seen): void {
    const { topic, text, at } = seen
    if (topic === `${BASE}/bridge/state` && text === 'online') this.onlineAt.push(at)
    if (this.#isPlanted(topic, text)) this.planted.add(seen)
    else if (this.foreign.has(topic))
      this.object('foreign touched', `${topic} became ${text.slice(0, 200) || 'nothing'}`)
    else if (isAnswer(topic)) this.#answer(seen)
    else if (/^[^/]+\/[^/]+\/app\/[^/]+$/.test(topic) && topic.startsWith(APPS)) this.#app(topic, text)
    else if (DEVICE.test(topic)) this.#device(topic, text)
  }

  #answer(seen: Seen): void {
    const token = tokenOf(seen)
    if (token === undefined) return
    const { ok, replayed } = parseAnswer(seen.text)
    const shows = this.#expected.get(token)
    if (shows === undefined || !ok || replayed) return
    this.#expected.delete(token)
    if (!shows(this.#hub)) this.object('false ok', `${seen.topic} (${token}): ${seen.text.slice(0, 300)}`)
  }

  #app(topic: string, text: string): void {
    const id = idOf(topic)
    const isThere = this.#hub.apps.has(id)
    if (this.returns.take(id, text !== ''))
      this.#returned.push(`${topic} was published again, but the hub does not have the app`)
    if (text === '' && isThere && this.#stays) {
      this.object('wiped', `${topic} was cleared, but the hub has the app`)
    }
  }

  #device(topic: string, text: string): void {
    const before = this.#devices.get(topic)
    if (text !== '') {
      const [app] = references(text, APPS)
      if (app !== undefined) this.#devices.set(topic, app)
      return
    }
    this.#devices.delete(topic)
    if (before === undefined) return
    const id = idOf(before)
    // Ignore nameless devices: until the hub identifies itself, a starting bridge names devices after the configured
    // hub name. A later check finds apps without a device. Also ignore devices of a previous identity: they may be
    // cleared after the episode in which the identity changed.
    const isCurrent = topic.includes(this.#hub.id) && !NAMELESS.test(topic)
    if (this.#hub.apps.has(id) && this.#stays && isCurrent)
      this.object('wiped', `${topic} was cleared, but the hub has the app`)
  }

  get #stays(): boolean {
    return !this.identityChanged && !this.outdated && !this.leavesOut
  }

  #isPlanted(topic: string, text: string): boolean {
    const key = `${topic}\n${text}`
    const count = this.#planting.get(key) ?? 0
    if (count > 0) this.#planting.set(key, count - 1)
    return count > 0
  }
}
