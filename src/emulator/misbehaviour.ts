/** The behaviours of the hub, one row each: options, documentation and effect. */
import { validateHeaderValue } from 'node:http'
import * as v from 'valibot'
import { optional } from './core/endpoint.ts'
import { APP_SECTION, ENTRIES } from './core/table.ts'
import * as faults from './faults.ts'
import { mapping } from './hub-file.ts'

const NAMES = [...ENTRIES, APP_SECTION].map(({ name }) => name)
const Operation = v.picklist(NAMES, 'must be an operation of the hub')
const count = v.pipe(v.number(), v.minValue(0))
const Status = v.pipe(v.number(), v.integer(), v.minValue(200), v.maxValue(599))
const status = (usual: number) => optional(Status, `Default ${usual}.`)
const ms = (usual: number) => optional(count, `Milliseconds; default ${usual}.`)
const headerValue = v.pipe(v.string(), v.check(isHeaderValue, 'cannot be sent in a header'))
const value = optional(v.unknown(), 'Any JSON value.')
const times = optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 'Number of times; default: until cleared.')

function isHeaderValue(text: string): boolean {
  try {
    validateHeaderValue('name', text)
    return true
  } catch {
    return false
  }
}

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

function row<const C extends Concern, const E extends v.ObjectEntries>(
  concerns: C,
  doc: string,
  own: E,
  make: (given: Options<E>) => Made,
) {
  return { concerns, doc, options: v.strictObject({ ...own, ...LIMITS[concerns] }), make }
}

const answers = <const E extends v.ObjectEntries>(doc: string, own: E, make: (given: Options<E>) => faults.Fault) =>
  row('requests', doc, own, (given) => ({ fault: make(given) }))

const refusal = (doc: string) => row('sessions', doc, { status: status(500) }, (given) => ({ status: given.status }))

const plain = <const C extends Concern>(concerns: C, doc: string) => row(concerns, doc, {}, () => ({}))

const ANSWERS = {
  'answer-status': answers(
    'Refuses the request with a status such as 401, 403, 404, 429, 500 or 503.',
    {
      status: status(500),
      retryAfter: optional(count, 'Seconds of `Retry-After`.'),
      error: optional(v.string(), '`error` in the body.'),
      description: optional(v.string(), '`error_description` in the body.'),
    },
    faults.refuse,
  ),
  'subscription-inactive': answers(
    'Answers 403 to every request, including pings, as a Self-Hosted Server without a licence does.',
    {},
    () => faults.worded(faults.subscriptionInactive(), { statusCode: 403, error: 'Subscription Inactive' }),
  ),
  'missing-api-method': answers('Reports that the hub lacks the method, as older hubs do: with status 500.', {}, () =>
    faults.refuse({ status: 500, error: 'missing_api_method' }),
  ),
  'rate-limit': answers(
    'Requests above the rate limit get 429 and are not executed.',
    {
      requests: optional(count, 'Number of accepted requests; default 4.'),
      windowMs: optional(count, 'Period in milliseconds; default 500.'),
      retryAfter: optional(count, 'Seconds of `Retry-After`.'),
    },
    faults.rateLimit,
  ),
  pretend: answers(
    'Confirms the request without executing it.',
    { status: status(200), value },
    ({ status = 200, value = null }) =>
      faults.replaced({ status, headers: faults.JSON_TYPE, text: JSON.stringify(value) }),
  ),
  'not-json': answers(
    'Answers with text that is not JSON.',
    { text: optional(v.string(), 'The text.') },
    ({ text = 'This is not JSON' }) => faults.reworded(() => text),
  ),
  'truncated-json': answers('Sends only the first half of the answer.', {}, () =>
    faults.reworded((text) => text.slice(0, Math.floor(text.length / 2))),
  ),
  'wrong-shape': answers('Answers with JSON of a different structure.', { value }, ({ value = ['neither', 7, null] }) =>
    faults.reworded(() => JSON.stringify(value)),
  ),
  'other-fields': answers(
    'Sets or removes fields of the answer, if it is an object.',
    {
      set: optional(mapping, 'Fields with their values.'),
      omit: optional(v.pipe(v.array(v.string()), v.readonly()), 'Names of fields.'),
    },
    ({ set = {}, omit = [] }) =>
      faults.altered((answer) =>
        Object.fromEntries(Object.entries({ ...answer, ...set }).filter(([name]) => !omit.includes(name))),
      ),
  ),
  'empty-list': answers('Answers with an empty list of apps.', {}, () => faults.reworded(() => '{}')),
  'half-list': answers(
    'Answers with only a part of the list, like a hub that has not started all apps yet.',
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
  ),
  'foreign-ids': answers(
    'Answers with records that have a different id.',
    { suffix: optional(v.string(), 'The text that is added to the id; default `.other`.') },
    ({ suffix = '.other' }) => faults.altered((answer) => faults.renamed(answer, suffix)),
  ),
  'deep-json': answers(
    'Replaces every value of the answer with deeply nested arrays.',
    { levels: optional(count, 'The depth; default 5000.') },
    ({ levels = 5000 }) => faults.deepJson(levels),
  ),
  'stale-reads': answers(
    'Repeats the first answer to a read, even if the data has changed since.',
    {},
    faults.staleReads,
  ),
  'big-body': answers(
    'Answers with a body that is too large.',
    { megabytes: optional(count, 'Default 64.') },
    ({ megabytes = 64 }) => faults.bigBody(megabytes),
  ),
  'slow-headers': answers('Executes the request immediately, answers later.', { ms: ms(1000) }, ({ ms = 1000 }) =>
    faults.slowHeaders(ms),
  ),
  'dripping-body': answers(
    'Sends the answer in small pieces.',
    { ms: ms(100), bytes: optional(count, 'Bytes per piece; default 1.') },
    ({ ms = 100, bytes = 1 }) => faults.drippingBody(ms, Math.max(1, bytes)),
  ),
  'never-answer': answers('Accepts the request and never answers.', {}, () => ({ executes: false, answer() {} })),
  'execute-then-reset': answers('Executes the request, then resets the connection.', {}, () => faults.reset(true)),
  'reset-before-executing': answers('Resets the connection without executing the request.', {}, () =>
    faults.reset(false),
  ),
  'gateway-page': answers(
    "Answers with an HTML page, as a gateway or portal at the hub's address does.",
    { status: status(502) },
    ({ status = 502 }) => faults.foreign(status, { 'content-type': 'text/html' }, faults.gatewayPage(status)),
  ),
  'portal-json': answers(
    "Answers with JSON without the hub's identity, as another server at the hub's address does.",
    { status: status(200), value },
    ({ status = 200, value = { error: 'starting up' } }) =>
      faults.foreign(status, faults.JSON_TYPE, JSON.stringify(value)),
  ),
  'gateway-answer': answers(
    "Answers as a gateway in front of the hub, without the hub's identity.",
    {
      status: status(200),
      text: optional(v.string(), 'The body; default: none.'),
      type: optional(headerValue, 'Its `Content-Type`; default `application/json`.'),
      executes: optional(v.boolean(), 'Whether the hub still executes the request; default: no.'),
    },
    ({ status = 200, text = '', type = 'application/json', executes }) =>
      faults.foreign(status, { 'content-type': type }, text, executes),
  ),
  redirect: answers(
    "Redirects the client, as another server at the hub's address does.",
    { status: status(302), location: optional(headerValue, 'The target address.') },
    ({ location = 'http://elsewhere.invalid/', status = 302 }) => faults.foreign(status, { location }, ''),
  ),
} as const

const IDENTITY = {
  'no-identity': row('requests', 'Answers without the headers that identify the hub.', {}, () => ({ identity: null })),
  'other-identity': row(
    'requests',
    'Answers with the identity of another hub.',
    { id: optional(headerValue, 'The id of that hub.'), version: optional(headerValue, 'The firmware of that hub.') },
    ({ id = 'another-hub', version }) => ({ identity: { id, version } }),
  ),
} as const

export const REALTIME = {
  'refuse-handshake': refusal('`handshakeClient` returns an error.'),
  'refuse-namespace': refusal('The namespace is not opened.'),
  'refuse-subscription': refusal('`subscribe` returns an error.'),
  'namespace-token': plain(
    'channel',
    'The handshake returns a token, and the namespace requires it from every client.',
  ),
  'drop-realtime': plain('sessions', 'The namespace is opened and immediately closed.'),
  'lose-events': plain('events', 'Events are lost.'),
  'duplicate-events': plain('events', 'Each event is sent twice.'),
  'reorder-events': plain('events', 'An event is sent after the next one.'),
  'realtime-silent': plain('channel', 'The connection acknowledges and answers pings, but no event arrives.'),
  'realtime-hung': plain(
    'channel',
    'Realtime connections are blocked in both directions; held data is sent when the behaviour ends.',
  ),
} as const

export const BEHAVIOURS = { ...ANSWERS, ...IDENTITY, ...REALTIME } as const

export type BehaviourName = keyof typeof BEHAVIOURS
type Rows = typeof BEHAVIOURS

/** A behaviour of the whole channel is only on or off, so it has no limit of times. */
type NoLimits = { times?: never }

export type BehaviourOptions = {
  [N in BehaviourName]: v.InferOutput<Rows[N]['options']> & (Rows[N]['concerns'] extends 'channel' ? NoLimits : unknown)
}

export const isBehaviour = (name: string): name is BehaviourName => Object.hasOwn(BEHAVIOURS, name)

const MAKERS: { readonly [N in BehaviourName]: { make(options: BehaviourOptions[N]): Made } } = BEHAVIOURS

export const made = <N extends BehaviourName>(name: N, options: BehaviourOptions[N]): Made => MAKERS[name].make(options)
