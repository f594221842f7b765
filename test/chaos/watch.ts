/** Looks on while it happens: what has to be compared with the hub's own memory at the moment of a message. */
import type { EmulatedHub } from '../../src/emulator/hub.ts'
import type { Seen } from '../support/observer.ts'
import { isAnswer, parseAnswer, tokenOf } from './answers.ts'
import { DEVICE, references } from './discovery.ts'
import type { LiveChecker, Violation } from './history.ts'
import { APPS, idOf } from './model.ts'
import { Returns } from './returns.ts'

/** A device of a hub that does not say who it is. */
const NAMELESS = /\/hub2mqtt---20[^/]*\/config$/

/** Whether the hub shows what was asked for. */
export type Shows = (hub: EmulatedHub) => boolean

export class Watch {
  readonly violations: Violation[] = []
  /** Messages of our own on topics of the bridge. */
  readonly planted = new Set<Seen>()
  /** Topics that are somebody else's. */
  readonly foreign = new Set<string>()
  /** Whether configuration leaves apps out for a while, such as come meanwhile, too. */
  leavesOut = false
  /** Whether the hub was another one in between: what belonged to the first may be cleared and made anew. */
  identityChanged = false
  /** Whether old lists were shown to the bridge, which may have believed them. */
  outdated = false
  /** Whether events of the hub came later than what it had answered since. */
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

  /** Apps that came back though the hub did not have them any more, and had given no reason. */
  get returned(): readonly string[] {
    return this.identityChanged || this.outdated || this.late ? [] : this.#returned
  }

  object(checker: LiveChecker, what: string): void {
    this.violations.push({ checker, what })
  }

  /** What the hub has to show when the command with this token is answered `ok`. */
  expect(token: string, shows: Shows): void {
    this.#expected.set(token, shows)
  }

  /** The next such message is our own. */
  planting(topic: string, text: string): void {
    const key = `${topic}\n${text}`
    this.#planting.set(key, (this.#planting.get(key) ?? 0) + 1)
  }

  /** A new episode. What is known of devices stays. */
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
    const { topic, text } = seen
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
    if (this.returns.take(id, text !== '')) this.#returned.push(`${topic} came back, and the hub has no such app`)
    if (text === '' && isThere && this.#stays) {
      this.object('wiped', `${topic} was cleared, and the hub has the app`)
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
    // A bridge that starts while the hub does not say who it is names devices after the configuration, until it does.
    // That each app has a device is checked at the end.
    if (this.#hub.apps.has(id) && this.#stays && !NAMELESS.test(topic))
      this.object('wiped', `${topic} was cleared, and the hub has the app`)
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
