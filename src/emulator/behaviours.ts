/** How the hub misbehaves at present. Each behaviour has a name; what it does to an answer stands in `faults.ts`. */
import type { OperationName } from './core/table.ts'
import { FAULTS, type Fault, type FaultName, type FaultOptions } from './faults.ts'

/** Without limits a behaviour lasts until it is cleared and concerns everything. */
export interface RestLimits {
  times?: number
  operation?: OperationName | readonly OperationName[]
  event?: never
}

export interface EventLimits {
  times?: number
  /** Only events of this name, such as `app.delete`. */
  event?: string
  operation?: never
}

/** For what happens to a session as a whole. */
export interface SessionLimits {
  times?: number
  event?: never
  operation?: never
}

/** For what is either so or not. */
export interface NoLimits {
  times?: never
  event?: never
  operation?: never
}

interface IdentityOptions {
  /** Answers come without the headers that tell who the hub is. */
  'no-identity': RestLimits
  /** Answers come with the identity of another hub. */
  'other-identity': RestLimits & { id?: string; version?: string }
}

interface RealtimeOptions {
  /** `handshakeClient` is answered with an error. */
  'refuse-handshake': SessionLimits & { status?: number }
  /** The namespace is not opened. */
  'refuse-namespace': SessionLimits & { status?: number }
  /** `subscribe` is answered with an error. */
  'refuse-subscription': SessionLimits & { status?: number }
  /** The handshake brings a token, and the namespace wants to see it. */
  'namespace-token': NoLimits
  /** The namespace is opened and closed again at once. */
  'drop-realtime': SessionLimits
  /** Events are not sent and never will be. */
  'lose-events': EventLimits
  /** Each event is sent twice. */
  'duplicate-events': EventLimits
  /** An event changes places with the one after it. */
  'reorder-events': EventLimits
  /** The connection is up, acknowledges and answers pings, but no event comes. */
  'realtime-silent': NoLimits
  /** Nothing at all leaves or enters realtime connections, old and new; what was held up flows when it ends. */
  'realtime-hung': NoLimits
}

export type BehaviourOptions = { [N in FaultName]: FaultOptions[N] & RestLimits } & IdentityOptions & RealtimeOptions
export type BehaviourName = keyof BehaviourOptions
export type RealtimeBehaviour = keyof RealtimeOptions

interface Made {
  fault?: Fault
  /** Who the hub says that it is; `null`: it does not. */
  identity?: { id?: string | undefined; version?: string | undefined } | null
  status?: number | undefined
}

interface Active {
  name: BehaviourName
  left: number
  subjects: readonly string[] | undefined
  made: Made
}

type Maker<N extends BehaviourName> = (options: BehaviourOptions[N]) => Made

const asFault =
  <O>(make: (options: O) => Fault) =>
  (options: O): Made => ({ fault: make(options) })
const plain = (): Made => ({})
const refusal = ({ status }: { status?: number }): Made => ({ status })

const MAKERS: { [N in BehaviourName]: Maker<N> } = {
  'answer-status': asFault(FAULTS['answer-status']),
  pretend: asFault(FAULTS.pretend),
  'not-json': asFault(FAULTS['not-json']),
  'truncated-json': asFault(FAULTS['truncated-json']),
  'wrong-shape': asFault(FAULTS['wrong-shape']),
  'empty-list': asFault(FAULTS['empty-list']),
  'big-body': asFault(FAULTS['big-body']),
  'slow-headers': asFault(FAULTS['slow-headers']),
  'dripping-body': asFault(FAULTS['dripping-body']),
  'never-answer': asFault(FAULTS['never-answer']),
  'execute-then-reset': asFault(FAULTS['execute-then-reset']),
  'reset-before-executing': asFault(FAULTS['reset-before-executing']),
  'gateway-page': asFault(FAULTS['gateway-page']),
  'portal-json': asFault(FAULTS['portal-json']),
  redirect: asFault(FAULTS.redirect),
  'missing-api-method': asFault(FAULTS['missing-api-method']),
  'rate-limit': asFault(FAULTS['rate-limit']),
  'half-list': asFault(FAULTS['half-list']),
  'foreign-ids': asFault(FAULTS['foreign-ids']),
  'deep-json': asFault(FAULTS['deep-json']),
  'stale-reads': asFault(FAULTS['stale-reads']),
  'no-identity': () => ({ identity: null }),
  'other-identity': ({ id = 'another-hub', version }) => ({ identity: { id, version } }),
  'refuse-handshake': refusal,
  'refuse-namespace': refusal,
  'refuse-subscription': refusal,
  'namespace-token': plain,
  'drop-realtime': plain,
  'lose-events': plain,
  'duplicate-events': plain,
  'reorder-events': plain,
  'realtime-silent': plain,
  'realtime-hung': plain,
}

/** What makes sense for some answers only. */
const DEFAULT_SUBJECTS: Partial<Record<BehaviourName, readonly string[]>> = {
  'empty-list': ['getApps'],
  'half-list': ['getApps'],
  'foreign-ids': ['getApps', 'getApp'],
}

export class Behaviours {
  #active: Active[] = []

  /** Sets a behaviour, beside others of the same name that concern other operations or events. */
  set<N extends BehaviourName>(name: N, options: BehaviourOptions[N]): void {
    const { times, operation, event } = options
    const subjects = listed(operation ?? event) ?? DEFAULT_SUBJECTS[name]
    const same = (active: Active) => active.name === name && String(active.subjects) === String(subjects)
    this.#active = this.#active.filter((active) => !same(active))
    this.#active.push({ name, left: times ?? Number.POSITIVE_INFINITY, subjects, made: MAKERS[name](options) })
  }

  clear(name?: BehaviourName): void {
    this.#active = name === undefined ? [] : this.#active.filter((active) => active.name !== name)
  }

  has(name: BehaviourName): boolean {
    return this.#active.some((active) => active.name === name && active.left > 0)
  }

  /** Takes one turn of a behaviour, if it is set and concerns `subject`. */
  claim(name: RealtimeBehaviour, subject?: string): Made | undefined {
    return this.#take((active) => active.name === name && concerns(active, subject))
  }

  /** Takes one turn of the fault that was set first for this request; over the realtime channel only refusals count. */
  claimFault(operation: string | undefined, via: 'rest' | 'socket', now: number): Fault | undefined {
    const fits = ({ fault }: Made) => fault !== undefined && (via === 'rest' || fault.refusal !== undefined)
    const meets = ({ fault }: Made) => fault?.meets === undefined || fault.meets(now)
    return this.#take((active) => fits(active.made) && concerns(active, operation) && meets(active.made))?.fault
  }

  /** Who the hub is to say that it is in its next answer; `undefined`: itself. */
  claimIdentity(operation: string | undefined): Made['identity'] {
    return this.#take((active) => active.made.identity !== undefined && concerns(active, operation))?.identity
  }

  #take(fits: (active: Active) => boolean): Made | undefined {
    if (this.#active.length === 0) return undefined
    const found = this.#active.find(fits)
    if (found === undefined) return undefined
    found.left -= 1
    if (found.left <= 0) this.#active = this.#active.filter((active) => active !== found)
    return found.made
  }
}

function listed(subject: string | readonly string[] | undefined): readonly string[] | undefined {
  return typeof subject === 'string' ? [subject] : subject
}

function concerns({ subjects }: Active, subject: string | undefined): boolean {
  return subjects === undefined || (subject !== undefined && subjects.includes(subject))
}
