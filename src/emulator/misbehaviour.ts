/** The behaviours of the hub, one row each: options, documentation and effect. */
import * as v from 'valibot'
import { optional } from './core/endpoint.ts'
import { APP_SECTION, ENTRIES } from './core/table.ts'
import * as faults from './faults.ts'
import { mapping } from './hub-file.ts'

const NAMES = [...ENTRIES, APP_SECTION].map(({ name }) => name)
const Operation = v.picklist(NAMES, 'must be an operation of the hub')
const count = v.pipe(v.number(), v.minValue(0))
/** Maximum delay of a timer. A timer with a longer delay would fire immediately. */
const LONGEST_MS = 2 ** 31 - 1
const Status = v.pipe(v.number(), v.integer(), v.minValue(200), v.maxValue(599))
const status = (usual: number) => optional(Status, `Default ${usual}.`)
const ms = (usual: number) => optional(v.pipe(count, v.maxValue(LONGEST_MS)), `Milliseconds; default ${usual}.`)
const headerValue = v.pipe(v.string(), v.regex(/^[\t -~\x80-\xff]*$/, 'cannot be sent in a header'))
const value = optional(v.unknown(), 'Any JSON value.')
const times = optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 'Number of times; default: until cleared.')

const LIMITS = {
  requests: {
    times,
    operation: optional(v.union([Operation, v.pipe(v.array(Operation), v.readonly())]), 'Only these operations.'),
  },
  events: { times, event: optional(v.string(), 'Only events of this name, such as `app.delete`.') },
  sessions: { times },
  channel: {},
} as const

type Concern = keyof typeof LIMITS

export interface Made {
  readonly fault?: faults.Fault
  /** The identity in the hub's answers; `null` if the answers must have none. */
  readonly identity?: { readonly id?: string | undefined; readonly version?: string | undefined } | null
  readonly status?: number | undefined
}

type Options<E extends v.ObjectEntries> = v.InferOutput<v.StrictObjectSchema<E, undefined>>

const row = <const C extends Concern, const E extends v.ObjectEntries>(
  concerns: C,
  own: E,
  make: (given: Options<E>) => Made,
) => ({
  doc: (doc: string) => ({ concerns, doc, options: v.strictObject({ ...own, ...LIMITS[concerns] }), make }),
})

const answers = <const E extends v.ObjectEntries>(own: E, make: (given: Options<E>) => faults.Fault) =>
  row('requests', own, (given) => ({ fault: make(given) }))

const refusal = row('sessions', { status: status(500) }, (given) => ({ status: given.status }))

const plain = <const C extends Concern>(concerns: C) => row(concerns, {}, () => ({}))

const ANSWERS = {
  'answer-status': answers(
    {
      status: status(500),
      retryAfter: optional(count, 'Seconds of `Retry-After`.'),
      error: optional(v.string(), '`error` in the body.'),
      description: optional(v.string(), '`error_description` in the body.'),
    },
    faults.refuse,
  ).doc('Refuses the request with a status such as 401, 403, 404, 429, 500 or 503.'),
  'subscription-inactive': answers({}, () =>
    faults.worded(faults.subscriptionInactive(), { statusCode: 403, error: 'Subscription Inactive' }),
  ).doc('Answers 403 to every request, including pings, as a Self-Hosted Server without a licence does.'),
  'missing-api-method': answers({}, () => faults.refuse({ status: 500, error: 'missing_api_method' })).doc(
    'Reports that the hub lacks the method, as older hubs do: with status 500.',
  ),
  'rate-limit': answers(
    {
      requests: optional(count, 'Number of accepted requests; default 4.'),
      windowMs: optional(count, 'Period in milliseconds; default 500.'),
      retryAfter: optional(count, 'Seconds of `Retry-After`.'),
    },
    faults.rateLimit,
  ).doc('Requests above the rate limit get 429 and are not executed.'),
  pretend: answers({ status: status(200), value }, ({ status = 200, value = null }) =>
    faults.replaced({ status, headers: faults.JSON_TYPE, text: JSON.stringify(value) }),
  ).doc('Confirms the request without executing it.'),
  'not-json': answers({ text: optional(v.string(), 'The text.') }, ({ text = 'This is not JSON' }) =>
    faults.reworded(() => text),
  ).doc('Answers with text that is not JSON.'),
  'truncated-json': answers({}, () => faults.reworded((text) => text.slice(0, Math.floor(text.length / 2)))).doc(
    'Sends only the first half of the answer.',
  ),
  'wrong-shape': answers({ value }, ({ value = ['neither', 7, null] }) =>
    faults.reworded(() => JSON.stringify(value)),
  ).doc('Answers with JSON of a different structure.'),
  'other-fields': answers(
    {
      set: optional(mapping, 'Fields with their values.'),
      omit: optional(v.pipe(v.array(v.string()), v.readonly()), 'Names of fields.'),
    },
    ({ set = {}, omit = [] }) =>
      faults.altered((answer) =>
        Object.fromEntries(Object.entries({ ...answer, ...set }).filter(([name]) => !omit.includes(name))),
      ),
  ).doc('Sets or removes fields of the answer, if it is an object.'),
  'empty-list': answers({}, () => faults.reworded(() => '{}')).doc('Answers with an empty list of apps.'),
  'half-list': answers(
    {
      keep: optional(
        v.pipe(v.number(), v.minValue(0), v.maxValue(1)),
        'The fraction of apps in the list, rounded up; default 0.5.',
      ),
    },
    ({ keep = 0.5 }) =>
      faults.altered((list) => {
        const entries = Object.entries(list)
        return Object.fromEntries(entries.slice(0, Math.ceil(entries.length * keep)))
      }),
  ).doc('Answers with only a part of the list, like a hub that has not started all apps yet.'),
  'foreign-ids': answers(
    { suffix: optional(v.string(), 'The text that is added to the id; default `.other`.') },
    ({ suffix = '.other' }) => faults.altered((answer) => faults.renamed(answer, suffix)),
  ).doc('Answers with records that have a different id.'),
  'deep-json': answers({ levels: optional(count, 'The depth; default 5000.') }, ({ levels = 5000 }) =>
    faults.deepJson(levels),
  ).doc('Replaces every value of the answer with deeply nested arrays.'),
  'stale-reads': answers({}, faults.staleReads).doc(
    'Repeats the first answer to a read, even if the data has changed since.',
  ),
  'big-body': answers({ megabytes: optional(count, 'Default 64.') }, ({ megabytes = 64 }) =>
    faults.bigBody(megabytes),
  ).doc('Answers with a body that is too large.'),
  'slow-headers': answers({ ms: ms(1000) }, ({ ms = 1000 }) => faults.slowHeaders(ms)).doc(
    'Executes the request immediately, but answers later.',
  ),
  'dripping-body': answers(
    { ms: ms(100), bytes: optional(count, 'Bytes per piece; default 1.') },
    ({ ms = 100, bytes = 1 }) => faults.drippingBody(ms, Math.max(1, bytes)),
  ).doc('Sends the answer in small pieces.'),
  'never-answer': answers({}, () => ({ executes: false, answer() {} })).doc('Accepts the request and never answers.'),
  'execute-then-reset': answers({}, () => faults.reset(true)).doc('Executes the request, then resets the connection.'),
  'reset-before-executing': answers({}, () => faults.reset(false)).doc(
    'Resets the connection without executing the request.',
  ),
  'gateway-page': answers({ status: status(502) }, ({ status = 502 }) =>
    faults.foreign(status, { 'content-type': 'text/html' }, faults.gatewayPage(status)),
  ).doc("Answers with an HTML page, as a gateway or portal at the hub's address does."),
  'portal-json': answers({ status: status(200), value }, ({ status = 200, value = { error: 'starting up' } }) =>
    faults.foreign(status, faults.JSON_TYPE, JSON.stringify(value)),
  ).doc("Answers with JSON without the hub's identity, as another server at the hub's address does."),
  'gateway-answer': answers(
    {
      status: status(200),
      text: optional(v.string(), 'The body; default: none.'),
      type: optional(headerValue, 'Its `Content-Type`; default `application/json`.'),
      executes: optional(v.boolean(), 'Whether the hub still executes the request; default: no.'),
    },
    ({ status = 200, text = '', type = 'application/json', executes }) =>
      faults.foreign(status, { 'content-type': type }, text, executes),
  ).doc("Answers as a gateway in front of the hub, without the hub's identity."),
  redirect: answers(
    { status: status(302), location: optional(headerValue, 'The target address.') },
    ({ location = 'http://elsewhere.invalid/', status = 302 }) => faults.foreign(status, { location }, ''),
  ).doc("Redirects the client, as another server at the hub's address does."),
} as const

const IDENTITY = {
  'no-identity': row('requests', {}, () => ({ identity: null })).doc(
    'Answers without the headers that identify the hub.',
  ),
  'other-identity': row(
    'requests',
    { id: optional(headerValue, 'The id of that hub.'), version: optional(headerValue, 'The firmware of that hub.') },
    ({ id = 'another-hub', version }) => ({ identity: { id, version } }),
  ).doc('Answers with the identity of another hub.'),
} as const

export const REALTIME = {
  'refuse-handshake': refusal.doc('`handshakeClient` returns an error.'),
  'refuse-namespace': refusal.doc('The namespace is not opened.'),
  'refuse-subscription': refusal.doc('`subscribe` returns an error.'),
  'namespace-token': plain('channel').doc(
    'The handshake returns a token, and the namespace requires it from every client.',
  ),
  'drop-realtime': plain('sessions').doc('The namespace is opened and immediately closed.'),
  'lose-events': plain('events').doc('Events are lost.'),
  'duplicate-events': plain('events').doc('Each event is sent twice.'),
  'reorder-events': plain('events').doc('An event is sent after the next one.'),
  'realtime-silent': plain('channel').doc('The connection acknowledges and answers pings, but no event arrives.'),
  'realtime-hung': plain('channel').doc(
    'Realtime connections are blocked in both directions; the blocked data is sent when the behaviour ends.',
  ),
} as const

export const BEHAVIOURS = { ...ANSWERS, ...IDENTITY, ...REALTIME } as const

export type BehaviourName = keyof typeof BEHAVIOURS
type Rows = typeof BEHAVIOURS

/** A behaviour of the whole channel is either on or off, so `times` does not apply. */
type NoLimits = { times?: never }

export type BehaviourOptions = {
  [N in BehaviourName]: v.InferOutput<Rows[N]['options']> & (Rows[N]['concerns'] extends 'channel' ? NoLimits : unknown)
}

export const isBehaviour = (name: string): name is BehaviourName => Object.hasOwn(BEHAVIOURS, name)

const MAKERS: { readonly [N in BehaviourName]: { make(options: BehaviourOptions[N]): Made } } = BEHAVIOURS

export const made = <N extends BehaviourName>(name: N, options: BehaviourOptions[N]): Made => MAKERS[name].make(options)
