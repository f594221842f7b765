/**
 * The hub's end of the pipe to an app. Both sides send JSON objects, one per line; `../sdk/` is the app's side. The hub
 * does not trust the app: it kills an app that sends a line that is too long, and limits the messages per second and
 * the number of requests in progress. Messages beyond these limits wait in the app.
 */

import type { Duplex } from 'node:stream'
import * as v from 'valibot'
import { type Clock, within } from '../../base/clock.ts'
import { readJson } from '../../base/read-json.ts'
import { onceEach } from '../../base/text.ts'
import { checked } from '../core/endpoint.ts'
import type { AppRequest } from '../core/hub-apps.ts'
import { asHubError, HubError } from '../hub-error.ts'
import { MAX_LINE_BYTES, MAX_NAME, type Refusal } from '../sdk/limits.js'
import { allow } from './allowance.ts'

const id = v.pipe(v.number(), v.safeInteger())
const name = v.pipe(v.string(), v.maxLength(MAX_NAME))

const FromApp = v.variant('type', [
  v.object({ type: v.literal('ready') }),
  v.object({ type: v.literal('crash'), message: v.string() }),
  v.object({ type: v.literal('subscribe'), id, uri: name }),
  v.object({ type: v.literal('unsubscribe'), uri: name }),
  v.object({ type: v.literal('emit'), event: name, payload: v.optional(v.unknown(), null) }),
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

/** An invalid message that the hub must answer. An `answer` is excluded, because its id is that of a hub's request. */
const InvalidRequest = v.looseObject({ type: v.pipe(v.string(), v.notValue('answer')), id })

type AppMessage = v.InferOutput<typeof FromApp>
export type RequestFromApp = Extract<AppMessage, { readonly type: 'subscribe' | 'call' | 'setting' }>
export type AppNotice = Extract<AppMessage, { readonly type: 'emit' | 'unsubscribe' }>

/** Messages from the hub. An `answer` has the `id` of the app's request. The hub's requests have their own ids. */
export type HubMessage =
  | { readonly type: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly type: 'answer'; readonly id: number; readonly error: Refusal }
  | { readonly type: 'event'; readonly uri: string; readonly event: string; readonly payload: unknown }
  | { readonly type: 'setting'; readonly name: string; readonly value?: unknown }
  | { readonly type: 'crash' }

type RequestToApp = ({ readonly type: 'request' } & AppRequest) | { readonly type: 'gc' } | { readonly type: 'usage' }

const MESSAGES_PER_SECOND = 200
const ANSWER_MS = 10_000
/** Maximum number of the app's requests that the hub handles at the same time. */
const MAX_HANDLED = 16
/** Maximum number of the hub's requests that wait for an answer from the app. */
const MAX_PENDING = 64
/** Maximum number of bytes that the app has not read yet. Above it, the hub drops events and refuses requests. */
const MAX_UNREAD = 1024 * 1024

interface ChannelOptions {
  readonly clock: Clock
  /** Answers a request from the app. @throws HubError to refuse the request */
  readonly answer: (request: RequestFromApp) => unknown
  readonly notice: (message: AppNotice | Extract<AppMessage, { readonly type: 'ready' | 'crash' }>) => void
  /** Receives lines for the app's output. */
  readonly note: (text: string) => void
  /** Called if the app breaks the rules and must be stopped. */
  readonly onAbuse: (reason: string) => void
}

export type Channel = ReturnType<typeof openChannel>

export function openChannel(socket: Duplex, { clock, answer, notice, note, onAbuse }: ChannelOptions) {
  const messages = allow(MESSAGES_PER_SECOND, clock, work)
  const pending = new Map<number, PromiseWithResolvers<unknown>>()
  const split = splitter(MAX_LINE_BYTES)
  let lines: string[] = []
  let last = 0
  let handled = 0
  let isEnded = false
  let isDraining = false
  const noteOnce = onceEach(note)
  const isBacklogged = () => socket.writableLength > MAX_UNREAD
  const write = (message: object) => void socket.write(`${JSON.stringify(message)}\n`)

  socket.on('error', () => {})
  socket.on('drain', work)
  socket.on('data', take)
  socket.once('close', end)

  function end(): void {
    if (isEnded) return
    isEnded = true
    messages.stop()
    for (const { reject } of pending.values()) reject(notRunning())
    pending.clear()
    lines = []
  }

  function take(chunk: Buffer): void {
    if (isEnded) return
    const received = split(chunk)
    if (received === undefined) {
      end()
      return void onAbuse('Error: a message to the hub was too long')
    }
    lines.push(...received)
    work()
  }

  function work(): void {
    while (!isEnded && !mustWait()) {
      const line = lines.shift()
      if (line === undefined) break
      if (!isDraining) messages.use(1)
      receive(line)
    }
    if (mustWait()) socket.pause()
    else socket.resume()
  }

  function mustWait(): boolean {
    if (isDraining || isEnded) return false
    return handled >= MAX_HANDLED || isBacklogged() || messages.isExhausted()
  }

  function receive(line: string): void {
    const message = readJson(FromApp, line)
    if (message === undefined) return void refuse(line)
    switch (message.type) {
      case 'answer':
        return void settle(message)
      case 'call':
      case 'setting':
      case 'subscribe':
        return void serve(message.id, () => answer(message))
      default:
        return void notice(message)
    }
  }

  function refuse(line: string): void {
    const request = readJson(InvalidRequest, line)
    if (request === undefined) noteOnce('the hub did not understand a message')
    else serve(request.id, () => checked(FromApp, request))
  }

  function settle({ id, value, error }: Extract<AppMessage, { readonly type: 'answer' }>): void {
    const request = pending.get(id)
    pending.delete(id)
    if (error === undefined) request?.resolve(value)
    else request?.reject(new HubError(error.status, error.code, error.message))
  }

  function serve(id: number, task: () => unknown): void {
    if (isDraining) return
    handled += 1
    // Never drop an answer. An app that reads slowly can send few new requests until it has read its answers.
    const done = (message: HubMessage) => {
      handled -= 1
      if (!isEnded) write(message)
      work()
    }
    Promise.try(task).then(
      (value) => done({ type: 'answer', id, value: value ?? null }),
      (thrown: unknown) => {
        const { status, error: code, message } = asHubError(thrown)
        done({ type: 'answer', id, error: { status, code, message } })
      },
    )
  }

  return {
    end,

    /** Sends a message to the app. Drops it if too many unread messages are waiting. */
    send(message: HubMessage): void {
      if (isEnded) return
      if (isBacklogged()) noteOnce('the app does not read its messages')
      else write(message)
    },

    /** Sends a request to the app. @throws HubError 503 if the app exits, hangs or is busy, or the app's own refusal */
    async request(request: RequestToApp): Promise<unknown> {
      if (isEnded) throw notRunning()
      if (pending.size >= MAX_PENDING || isBacklogged()) {
        throw new HubError(503, 'busy', 'The app has too many pending requests')
      }
      last += 1
      const id = last
      const answered = Promise.withResolvers<unknown>()
      pending.set(id, answered)
      write({ ...request, id })
      const value = await within(clock, ANSWER_MS, answered.promise)
      pending.delete(id)
      if (value === undefined) throw new HubError(503, 'timeout', 'The app does not answer')
      return value
    },

    /** Called when the process has exited: reads the last messages without limits, and answers no more requests. */
    drain(): void {
      isDraining = true
      messages.stop()
      work()
    },
  }
}

const notRunning = () => new HubError(503, 'not_running', 'The app is not running')

const NEWLINE = 10

/** Returns the lines that a chunk completes; `undefined` if a line is longer than `max` bytes. */
function splitter(max: number): (chunk: Buffer) => string[] | undefined {
  let rest = Buffer.alloc(0)
  return (chunk) => {
    const bytes = Buffer.concat([rest, chunk])
    const end = bytes.lastIndexOf(NEWLINE) + 1
    rest = bytes.subarray(end)
    return rest.length > max ? undefined : bytes.toString('utf8', 0, end).split('\n').slice(0, -1)
  }
}
