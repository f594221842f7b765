/**
 * The hub's end of the pipe to an app. Both sides send JSON objects, one per line; `../sdk/` is the app's side. The hub
 * does not trust the app: it limits the length of a line, the messages per second and the pending requests.
 * Anything beyond the limits waits in the app.
 */
import type { Duplex } from 'node:stream'
import * as v from 'valibot'
import type { Clock } from '../../base/clock.ts'
import { readJson } from '../../base/read-json.ts'
import { checked } from '../core/endpoint.ts'
import type { AppRequest } from '../core/hub-apps.ts'
import { asHubError, HubError } from '../hub-error.ts'
import { MAX_LINE_BYTES, MAX_NAME, type Refusal } from '../sdk/limits.js'
import { type Allowance, allow } from './allowance.ts'

const id = v.pipe(v.number(), v.safeInteger())
const name = v.pipe(v.string(), v.maxLength(MAX_NAME))

/** In characters. */
const MAX_STACK_LENGTH = 16_384

const FromApp = v.variant('type', [
  v.object({ type: v.literal('ready') }),
  v.object({
    type: v.literal('crash'),
    message: v.pipe(
      v.string(),
      v.transform((text) => text.slice(0, MAX_STACK_LENGTH)),
    ),
  }),
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

/** An invalid message that still needs an answer. The ids of `answer` messages are the hub's own. */
const InvalidRequest = v.looseObject({ type: v.pipe(v.string(), v.notValue('answer')), id })

type AppMessage = v.InferOutput<typeof FromApp>
export type RequestFromApp = Extract<AppMessage, { readonly type: 'subscribe' | 'call' | 'setting' }>
export type AppNotice = Extract<AppMessage, { readonly type: 'emit' | 'unsubscribe' }>

/** Messages of the hub. `answer` answers a request of the app; the hub's own requests also have an `id`. */
export type HubMessage =
  | { readonly type: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly type: 'answer'; readonly id: number; readonly error: Refusal }
  | { readonly type: 'event'; readonly uri: string; readonly event: string; readonly payload: unknown }
  | { readonly type: 'setting'; readonly name: string; readonly value?: unknown }
  | { readonly type: 'crash' }

type RequestToApp =
  | ({ readonly type: 'request'; readonly query: Readonly<Record<string, string>> } & Omit<AppRequest, 'query'>)
  | { readonly type: 'gc' }
  | { readonly type: 'usage' }

const MESSAGES_PER_SECOND = 200
const BYTES_PER_SECOND = 4 * 1024 * 1024
/** How long the app may take to answer. */
const ANSWER_MS = 10_000
/** How many requests of the app the hub handles at the same time. */
const MAX_HANDLED = 16
/** How many requests of the hub may be pending at the same time. */
const MAX_PENDING = 64
/** Bytes that may wait for an app that does not read; the hub drops further messages. */
const MAX_UNREAD = 1024 * 1024

interface ChannelOptions {
  readonly clock: Clock
  /** Answers a request of the app; a `HubError` refuses it. */
  readonly answer: (request: RequestFromApp) => unknown
  readonly notice: (message: AppNotice | Extract<AppMessage, { readonly type: 'ready' | 'crash' }>) => void
  /** Called with text for the app's output. */
  readonly note: (text: string) => void
  /** Called if the app breaks the rules and must be stopped. */
  readonly onAbuse: (reason: string) => void
}

interface Pending {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  readonly cancel: () => void
}

export class Channel {
  readonly #socket: Duplex
  readonly #options: ChannelOptions
  readonly #messages: Allowance
  readonly #bytes: Allowance
  readonly #pending = new Map<number, Pending>()
  readonly #split = splitter(MAX_LINE_BYTES)
  /** Received lines that are not handled yet. */
  #lines: string[] = []
  #last = 0
  #handled = 0
  #ended = false
  #draining = false
  readonly #noted = new Set<string>()

  constructor(socket: Duplex, options: ChannelOptions) {
    this.#socket = socket
    this.#options = options
    const work = () => this.#work()
    this.#messages = allow(MESSAGES_PER_SECOND, options.clock, work)
    this.#bytes = allow(BYTES_PER_SECOND, options.clock, work)
    socket.on('error', () => {})
    socket.on('drain', work)
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    socket.once('close', () => this.end())
  }

  /** Sends a message to the app; drops it if the app does not read. */
  send(message: HubMessage): void {
    if (this.#ended) return
    if (this.#socket.writableLength > MAX_UNREAD) return void this.#noteOnce('the app does not read its messages')
    this.#socket.write(`${JSON.stringify(message)}\n`)
  }

  /**
   * Sends a request to the app. @throws HubError 503 if the app ends, hangs or is busy, or the refusal of the app
   */
  request(request: RequestToApp): Promise<unknown> {
    if (this.#ended) return Promise.reject(notRunning())
    if (this.#pending.size >= MAX_PENDING || this.#socket.writableLength > MAX_UNREAD) {
      return Promise.reject(new HubError(503, 'busy', 'The app has too many pending requests'))
    }
    this.#last += 1
    const id = this.#last
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const cancel = this.#options.clock.after(ANSWER_MS, () => {
      this.#pending.delete(id)
      reject(new HubError(503, 'timeout', 'The app does not answer'))
    })
    this.#pending.set(id, { resolve, reject, cancel })
    this.#socket.write(`${JSON.stringify({ ...request, id })}\n`)
    return promise
  }

  /** Stops reading, and rejects all pending requests. */
  end(): void {
    if (this.#ended) return
    this.#ended = true
    this.#stopLimits()
    for (const { reject, cancel } of this.#pending.values()) {
      cancel()
      reject(notRunning())
    }
    this.#pending.clear()
    this.#lines = []
  }

  /** Called when the process has ended: reads the last messages without limits, and answers no more requests. */
  drain(): void {
    this.#draining = true
    this.#stopLimits()
    this.#work()
  }

  #stopLimits(): void {
    this.#messages.stop()
    this.#bytes.stop()
  }

  #take(chunk: Buffer): void {
    if (this.#ended) return
    if (!this.#draining) this.#bytes.use(chunk.length)
    const lines = this.#split(chunk)
    if (lines === undefined) {
      this.end()
      return void this.#options.onAbuse('Error: a message to the hub was too long')
    }
    this.#lines.push(...lines)
    this.#work()
  }

  /** Handles received lines in order, as long as the limits allow it. */
  #work(): void {
    while (!this.#ended && !this.#mustWait()) {
      const line = this.#lines.shift()
      if (line === undefined) break
      if (!this.#draining) this.#messages.use(1)
      this.#receive(line)
    }
    if (this.#mustWait()) this.#socket.pause()
    else this.#socket.resume()
  }

  #mustWait(): boolean {
    if (this.#draining || this.#ended) return false
    const { writableLength } = this.#socket
    if (this.#handled >= MAX_HANDLED || writableLength > MAX_UNREAD) return true
    return this.#messages.isExhausted() || this.#bytes.isExhausted()
  }

  #receive(line: string): void {
    const message = readJson(FromApp, line)
    if (message === undefined) return void this.#refuse(line)
    switch (message.type) {
      case 'answer':
        return void this.#settle(message)
      case 'call':
      case 'setting':
      case 'subscribe':
        return void this.#serve(message.id, () => this.#options.answer(message))
      default:
        return void this.#options.notice(message)
    }
  }

  #refuse(line: string): void {
    const request = readJson(InvalidRequest, line)
    if (request === undefined) return void this.#noteOnce('the hub did not understand a message')
    this.#serve(request.id, () => checked(FromApp, request))
  }

  #settle({ id, value, error }: Extract<AppMessage, { readonly type: 'answer' }>): void {
    const request = this.#pending.get(id)
    this.#pending.delete(id)
    request?.cancel()
    if (error === undefined) request?.resolve(value)
    else request?.reject(new HubError(error.status, error.code, error.message))
  }

  #serve(id: number, task: () => unknown): void {
    if (this.#draining) return
    this.#handled += 1
    const done = (answer: HubMessage) => {
      this.#handled -= 1
      this.#answer(answer)
      this.#work()
    }
    Promise.try(task).then(
      (value) => done({ type: 'answer', id, value: value ?? null }),
      (thrown: unknown) => {
        const { status, error: code, message } = asHubError(thrown)
        done({ type: 'answer', id, error: { status, code, message } })
      },
    )
  }

  /** Never drops an answer. An app that reads slowly can send few new requests until it has read its answers. */
  #answer(message: HubMessage): void {
    if (!this.#ended) this.#socket.write(`${JSON.stringify(message)}\n`)
  }

  #noteOnce(text: string): void {
    if (this.#noted.has(text)) return
    this.#noted.add(text)
    this.#options.note(text)
  }
}

const notRunning = () => new HubError(503, 'not_running', 'The app does not run')

const NEWLINE = 10

/**
 * Splits a stream of bytes into lines. Returns the lines that a chunk completes; `undefined` if one exceeds `most`.
 */
function splitter(most: number): (chunk: Buffer) => string[] | undefined {
  let rest: Buffer[] = []
  let bytes = 0
  return (chunk) => {
    const lines: string[] = []
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      lines.push(Buffer.concat([...rest, chunk.subarray(from, at)]).toString('utf8'))
      rest = []
      bytes = 0
      from = at + 1
    }
    rest.push(chunk.subarray(from))
    bytes += chunk.length - from
    return bytes > most ? undefined : lines
  }
}
