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
    error: optional(v.string(), 'The word in the body.'),
    description: optional(v.string(), 'The sentence in the body.'),
  }),
  'subscription-inactive': row(
    'requests',
    'A Self-Hosted Server without a licence: 403 to everything, a ping included.',
    {},
  ),
  'missing-api-method': row('requests', 'The hub lacks the method, as older ones say it: HTTP 500.', {}),
  'rate-limit': row('requests', 'What comes too fast is refused with 429 and not carried out.', {
    requests: optional(count, 'So many are taken; default 4.'),
    windowMs: optional(count, 'Within so many milliseconds; default 500.'),
    retryAfter: optional(count, 'Seconds of `Retry-After`.'),
  }),
  pretend: row('requests', 'Answers as if all were well, and does nothing.', { status: status(200), value }),
  'not-json': row('requests', 'Answers with text.', { text: optional(v.string(), 'The text.') }),
  'truncated-json': row('requests', 'The answer without its second half.', {}),
  'wrong-shape': row('requests', 'JSON, but not what was asked for.', { value }),
  'empty-list': row('requests', 'An empty list of apps.', {}),
  'half-list': row('requests', 'The list of a hub that has not started all of its apps.', {
    keep: optional(v.pipe(v.number(), v.minValue(0), v.maxValue(1)), 'This fraction of them, rounded up; default 0.5.'),
  }),
  'foreign-ids': row('requests', 'Records that call themselves by another id.', {
    suffix: optional(v.string(), 'What is added to the id; default `.other`.'),
  }),
  'deep-json': row('requests', 'Every value of the answer is an array of arrays.', {
    levels: optional(count, 'How deep; default 5000.'),
  }),
  'stale-reads': row('requests', 'A read is answered as it was the first time, whatever has happened since.', {}),
  'big-body': row('requests', 'A body that is too big.', { megabytes: optional(count, 'Default 64.') }),
  'slow-headers': row('requests', 'Carried out at once, answered later.', { ms: ms(1000) }),
  'dripping-body': row('requests', 'The answer comes bit by bit.', {
    ms: ms(100),
    bytes: optional(count, 'At a time; default 1.'),
  }),
  'never-answer': row('requests', 'Takes the request and never says anything.', {}),
  'execute-then-reset': row(
    'requests',
    'Carries the request out, then resets the connection: the client cannot know.',
    {},
  ),
  'reset-before-executing': row('requests', 'Resets the connection; nothing was done.', {}),
  'gateway-page': row('requests', 'The HTML page of something else at the address: a gateway or a portal.', {
    status: status(502),
  }),
  'portal-json': row('requests', 'JSON of something else at the address.', { status: status(200), value }),
  'gateway-answer': row('requests', 'Something on the way answers in place of the hub, without its identity.', {
    status: status(200),
    text: optional(v.string(), 'The body; default: none.'),
    type: optional(v.string(), 'Its `Content-Type`; default `application/json`.'),
    executes: optional(v.boolean(), 'Whether the hub carried the request out; default: it did not.'),
  }),
  redirect: row('requests', 'Something else at the address sends the client elsewhere.', {
    status: status(302),
    location: optional(v.string(), 'Where to.'),
  }),
} as const

const IDENTITY = {
  'no-identity': row('requests', 'Answers come without the headers that tell who the hub is.', {}),
  'other-identity': row('requests', 'Answers come with the identity of another hub.', {
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
    'The handshake brings a token, and the namespace wants to see it, whoever asks.',
    {},
  ),
  'drop-realtime': row('sessions', 'The namespace is opened and closed again at once.', {}),
  'lose-events': row('events', 'Events are not sent and never will be.', {}),
  'duplicate-events': row('events', 'Each event is sent twice.', {}),
  'reorder-events': row('events', 'An event changes places with the one after it.', {}),
  'realtime-silent': row('channel', 'The connection is up, acknowledges and answers pings, but no event comes.', {}),
  'realtime-hung': row(
    'channel',
    'Nothing at all leaves or enters realtime connections; what was held up flows when it ends.',
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
