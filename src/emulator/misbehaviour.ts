/** The ways in which the hub can be told to misbehave: one row each, with the options it takes. */
import * as v from 'valibot'
import { optional } from './core/endpoint.ts'
import { APP_SECTION, ENTRIES } from './core/table.ts'

const NAMES = [...ENTRIES, APP_SECTION].map(({ name }) => name)
const Operation = v.picklist(NAMES, 'has to be an operation of the hub')
const count = v.pipe(v.number(), v.minValue(0))
const Status = v.pipe(v.number(), v.integer(), v.minValue(200), v.maxValue(599))
const status = (usual: number) => optional(Status, `Default ${usual}.`)
const ms = (usual: number) => optional(count, `Milliseconds; default ${usual}.`)
const value = optional(v.unknown(), 'Any JSON value.')
const times = optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 'How often; default: until it is cleared.')

/** What a behaviour concerns, and how it can be limited. Without limits it concerns everything. */
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

function row<const C extends Concern, const E extends v.ObjectEntries>(concerns: C, doc: string, own: E) {
  return { concerns, doc, options: v.strictObject({ ...own, ...LIMITS[concerns] }) }
}

/** How HTTP answers go wrong. */
export const ANSWERS = {
  'answer-status': row('requests', 'A refusal: 401, 403, 404, 429, 500, 503 …', {
    status: status(500),
    retryAfter: optional(count, 'Seconds of `Retry-After`.'),
    error: optional(v.string(), '`error` in the body.'),
    description: optional(v.string(), '`error_description` in the body.'),
  }),
  'subscription-inactive': row(
    'requests',
    'A Self-Hosted Server without a licence: 403 to every request, also to a ping.',
    {},
  ),
  'missing-api-method': row('requests', 'The hub lacks the method, as older hubs report it: HTTP 500.', {}),
  'rate-limit': row('requests', 'Requests that come too fast get 429 and are not executed.', {
    requests: optional(count, 'Number of accepted requests; default 4.'),
    windowMs: optional(count, 'Period in milliseconds; default 500.'),
    retryAfter: optional(count, 'Seconds of `Retry-After`.'),
  }),
  pretend: row('requests', 'Confirms the request without executing it.', { status: status(200), value }),
  'not-json': row('requests', 'Answers with text.', { text: optional(v.string(), 'The text.') }),
  'truncated-json': row('requests', 'The first half of the answer.', {}),
  'wrong-shape': row('requests', 'JSON of another shape.', { value }),
  'empty-list': row('requests', 'An empty list of apps.', {}),
  'half-list': row('requests', 'The list of a hub that has not started all of its apps.', {
    keep: optional(v.pipe(v.number(), v.minValue(0), v.maxValue(1)), 'This fraction of them, rounded up; default 0.5.'),
  }),
  'foreign-ids': row('requests', 'Records with another id.', {
    suffix: optional(v.string(), 'What is added to the id; default `.other`.'),
  }),
  'deep-json': row('requests', 'Every value of the answer is an array of arrays.', {
    levels: optional(count, 'How deep; default 5000.'),
  }),
  'stale-reads': row('requests', 'Repeats the first answer to a read, whatever has changed since.', {}),
  'big-body': row('requests', 'A body that is too large.', { megabytes: optional(count, 'Default 64.') }),
  'slow-headers': row('requests', 'Executed at once, answered later.', { ms: ms(1000) }),
  'dripping-body': row('requests', 'The answer comes bit by bit.', {
    ms: ms(100),
    bytes: optional(count, 'At a time; default 1.'),
  }),
  'never-answer': row('requests', 'Accepts the request and never answers.', {}),
  'execute-then-reset': row('requests', 'Executes the request, then resets the connection.', {}),
  'reset-before-executing': row('requests', 'Resets the connection without executing the request.', {}),
  'gateway-page': row('requests', 'An HTML page of another server at the address: a gateway or a portal.', {
    status: status(502),
  }),
  'portal-json': row('requests', 'JSON of another server at the address.', { status: status(200), value }),
  'gateway-answer': row('requests', 'A gateway answers instead of the hub, without its identity.', {
    status: status(200),
    text: optional(v.string(), 'The body; default: none.'),
    type: optional(v.string(), 'Its `Content-Type`; default `application/json`.'),
    executes: optional(v.boolean(), 'Whether the hub carried the request out; default: it did not.'),
  }),
  redirect: row('requests', 'Another server at the address redirects the client.', {
    status: status(302),
    location: optional(v.string(), 'Where to.'),
  }),
} as const

const IDENTITY = {
  'no-identity': row('requests', 'Answers without the headers that identify the hub.', {}),
  'other-identity': row('requests', 'Answers with the identity of another hub.', {
    id: optional(v.string(), 'Its id.'),
    version: optional(v.string(), 'Its firmware.'),
  }),
} as const

export const REALTIME = {
  'refuse-handshake': row('sessions', '`handshakeClient` is answered with an error.', { status: status(500) }),
  'refuse-namespace': row('sessions', 'The namespace is not opened.', { status: status(500) }),
  'refuse-subscription': row('sessions', '`subscribe` is answered with an error.', { status: status(500) }),
  'namespace-token': row(
    'channel',
    'The handshake returns a token, and the namespace requires it from every client.',
    {},
  ),
  'drop-realtime': row('sessions', 'The namespace is opened and closed again at once.', {}),
  'lose-events': row('events', 'Events are lost.', {}),
  'duplicate-events': row('events', 'Each event is sent twice.', {}),
  'reorder-events': row('events', 'An event is sent after the next one.', {}),
  'realtime-silent': row('channel', 'The connection is up, acknowledges and answers pings, but no event comes.', {}),
  'realtime-hung': row(
    'channel',
    'Realtime connections are blocked in both directions; held-up data flows when the behaviour ends.',
    {},
  ),
} as const

export const BEHAVIOURS = { ...ANSWERS, ...IDENTITY, ...REALTIME } as const

export type BehaviourName = keyof typeof BEHAVIOURS
type Rows = typeof BEHAVIOURS

/** For what is either so or not. */
interface NoLimits {
  times?: never
}

export type BehaviourOptions = {
  [N in BehaviourName]: v.InferOutput<Rows[N]['options']> & (Rows[N]['concerns'] extends 'channel' ? NoLimits : unknown)
}

export const isBehaviour = (name: string): name is BehaviourName => Object.hasOwn(BEHAVIOURS, name)
