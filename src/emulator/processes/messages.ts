/** What an app's process and the hub say to each other: one JSON object a line. `../sdk/` is the other side. */
import * as v from 'valibot'

const id = v.pipe(v.number(), v.safeInteger())
const name = v.pipe(v.string(), v.maxLength(1000))

/** Characters. */
const MOST_OF_A_STACK = 16_384

export const FromApp = v.variant('type', [
  v.object({ type: v.literal('ready') }),
  v.object({
    type: v.literal('crash'),
    message: v.pipe(
      v.string(),
      v.transform((text) => text.slice(0, MOST_OF_A_STACK)),
    ),
  }),
  v.object({ type: v.literal('subscribe'), id, uri: name }),
  v.object({ type: v.literal('unsubscribe'), uri: name }),
  v.object({ type: v.literal('emit'), event: name, payload: v.unknown() }),
  v.object({
    type: v.literal('call'),
    id,
    section: name,
    item: name,
    operation: name,
    args: v.record(v.string(), v.unknown()),
  }),
  v.object({
    type: v.literal('setting'),
    id,
    operation: v.picklist(['get', 'set', 'unset', 'all']),
    name: v.optional(name, ''),
    value: v.optional(v.unknown(), null),
  }),
  v.object({
    type: v.literal('answer'),
    id,
    value: v.optional(v.unknown(), null),
    error: v.optional(
      v.object({
        status: v.pipe(v.number(), v.integer(), v.minValue(400), v.maxValue(599)),
        code: name,
        message: v.string(),
      }),
    ),
  }),
])

export type AppMessage = v.InferOutput<typeof FromApp>
export type AppQuestion = Extract<AppMessage, { readonly type: 'subscribe' | 'call' | 'setting' }>

/** What an app answers of its own use of the machine. */
export const OwnUsage = v.object({ cpuMs: v.number(), mem: v.number() })

/** Messages of the hub: `answer` answers a question of the app; a question of the hub has an `id` too. */
export type HubMessage =
  | { readonly type: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly type: 'answer'; readonly id: number; readonly error: Refusal }
  | { readonly type: 'event'; readonly uri: string; readonly event: string; readonly payload: unknown }
  | { readonly type: 'setting'; readonly name: string; readonly value?: unknown }
  | { readonly type: 'crash' }

export type HubQuestion =
  | {
      readonly type: 'request'
      readonly method: string
      readonly path: string
      readonly query: Readonly<Record<string, string>>
      readonly body: unknown
    }
  | { readonly type: 'gc' }
  | { readonly type: 'usage' }

export interface Refusal {
  readonly status: number
  readonly code: string
  readonly message: string
}
