/** The active behaviours of the hub. `misbehaviour.ts` defines them. */
import type { Fault } from './faults.ts'
import { type BehaviourName, type BehaviourOptions, type Made, made, type REALTIME } from './misbehaviour.ts'

type RealtimeBehaviour = keyof typeof REALTIME

interface Limits {
  times?: number | undefined
  operation?: string | readonly string[] | undefined
  event?: string | undefined
}

interface Active {
  name: BehaviourName
  options: object
  left: number
  subjects: readonly string[] | undefined
  made: Made
}

/** The operations to which a behaviour applies by default, if it is useful only for some operations. */
const DEFAULT_SUBJECTS: Partial<Record<BehaviourName, readonly string[]>> = {
  'empty-list': ['getApps'],
  'half-list': ['getApps'],
  'foreign-ids': ['getApps', 'getApp'],
}

export class Behaviours {
  #active: Active[] = []

  /** Sets a behaviour. Keeps behaviours of the same name that apply to other operations or events. */
  set<N extends BehaviourName>(name: N, options: BehaviourOptions[N]): void {
    const { times, operation, event }: Limits = options
    const given = operation ?? event
    const subjects = given === undefined ? DEFAULT_SUBJECTS[name] : [given].flat()
    const same = (active: Active) => active.name === name && String(active.subjects) === String(subjects)
    this.#active = this.#active.filter((active) => !same(active))
    this.#active.push({ name, options, left: times ?? Number.POSITIVE_INFINITY, subjects, made: made(name, options) })
  }

  clear(name?: BehaviourName): void {
    this.#active = name === undefined ? [] : this.#active.filter((active) => active.name !== name)
  }

  /** Returns the behaviours in the order in which they were set. `left`: number of remaining uses; `null`: no limit. */
  list(): { name: BehaviourName; options: object; left: number | null }[] {
    return this.#active.map(({ name, options, left }) => ({ name, options, left: Number.isFinite(left) ? left : null }))
  }

  has(name: BehaviourName): boolean {
    return this.#active.some((active) => active.name === name)
  }

  /** Returns a behaviour if it is set and applies to `subject`. Counts this use towards the limit of the behaviour. */
  claim(name: RealtimeBehaviour, subject?: string): Made | undefined {
    return this.#take((active) => active.name === name && concerns(active, subject))
  }

  /** Returns the first fault that applies to a request. Counts its use. The realtime channel can send only refusals. */
  claimFault(operation: string | undefined, via: 'rest' | 'socket', now: number): Fault | undefined {
    const fits = ({ fault }: Made) => fault !== undefined && (via === 'rest' || fault.refusal !== undefined)
    const meets = ({ fault }: Made) => fault?.meets === undefined || fault.meets(now)
    return this.#take((active) => fits(active.made) && concerns(active, operation) && meets(active.made))?.fault
  }

  /** Returns the identity for the hub's next answer; `undefined`: the hub's own identity. */
  claimIdentity(operation: string | undefined): Made['identity'] {
    return this.#take((active) => active.made.identity !== undefined && concerns(active, operation))?.identity
  }

  #take(fits: (active: Active) => boolean): Made | undefined {
    const found = this.#active.find(fits)
    if (found === undefined) return undefined
    found.left -= 1
    if (found.left <= 0) this.#active = this.#active.filter((active) => active !== found)
    return found.made
  }
}

function concerns({ subjects }: Active, subject: string | undefined): boolean {
  return subjects === undefined || (subject !== undefined && subjects.includes(subject))
}

type Send = (uri: string, event: string, payload: unknown) => void

/** Passes the hub's events to its listeners. The active behaviours can drop, duplicate or delay an event. */
export function eventGate(behaviours: Behaviours, send: Send) {
  let delayed: (() => void) | undefined

  const flush = () => {
    const waiting = delayed
    delayed = undefined
    waiting?.()
  }
  const pass: Send = (uri, event, payload) => {
    if (behaviours.claim('realtime-silent', event) ?? behaviours.claim('lose-events', event)) return
    const sendNow = () => send(uri, event, payload)
    if (delayed === undefined && behaviours.claim('reorder-events', event)) {
      delayed = sendNow
      return
    }
    sendNow()
    if (behaviours.claim('duplicate-events', event)) sendNow()
    flush()
  }
  return { pass, flush }
}
