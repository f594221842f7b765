/** One run of an app: its process, from start to end. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { realpath } from 'node:fs/promises'
import { Duplex, type Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import { ROOT } from '../../base/root.ts'
import type { AppRequest } from '../core/hub-apps.ts'
import { type Allowance, allow } from './allowance.ts'
import { type AppNews, type AppQuestion, Channel, type HubMessage } from './channel.ts'
import type { Output } from './output.ts'

/** The folder that every app may read besides its own. */
export const SDK = fileURLToPath(new URL('src/emulator/sdk/', ROOT))

interface Launch {
  readonly id: string
  readonly version: string
  /** Absolute path of the app's code. */
  readonly folder: string
  /** Relative to the folder. */
  readonly main: string
  /** Maximum heap size, in bytes. */
  readonly memoryLimit: number
}

/** How a process ended. */
export interface End {
  /** Whether the hub asked for it; otherwise it is a crash. */
  readonly asked: boolean
  readonly code: number | null
  readonly signal: string | null
  /** Why it crashed: the stack, or what is known. */
  readonly message: string
}

/** Receives the app's questions and messages. */
export interface Inquiries {
  /** @throws HubError if the hub refuses */
  answer(question: AppQuestion): unknown
  hear(news: AppNews): void
}

/** From SIGTERM to SIGKILL. */
const GRACE_MS = 2000
const OUTPUT_PER_SECOND = 1024 * 1024
/** How much of the last output is kept, to find out why the process died. */
const LAST_WORDS = 8192

export class AppProcess {
  readonly pid: number | undefined
  readonly #child: ChildProcess
  readonly #clock: Clock
  readonly #output: Output
  readonly #channel: Channel | undefined
  readonly #ready = Promise.withResolvers<boolean>()
  readonly #ended = Promise.withResolvers<End>()
  /** Whether the app has started to run; `false` if it ended before. */
  readonly ready = this.#ready.promise
  readonly ended = this.#ended.promise
  readonly #limits: Allowance[] = []
  #lastWords = ''
  #reason: string | undefined
  #asked = false
  /** The process has ended, but its pipes may still hold output. */
  #gone = false
  #cancelKill: (() => void) | undefined

  /** Resolves when the process exists; `ready` and `ended` follow. */
  static async start(launch: Launch, ...rest: readonly [Clock, Output, Inquiries]): Promise<AppProcess> {
    const { file, args } = await commandLine(launch)
    const stdio = ['ignore', 'pipe', 'pipe', 'pipe'] as const
    const child = spawn(file, args, { cwd: launch.folder, env: {}, stdio: [...stdio] })
    return new AppProcess(child, ...rest)
  }

  private constructor(child: ChildProcess, clock: Clock, output: Output, inquiries: Inquiries) {
    this.#child = child
    this.#clock = clock
    this.#output = output
    this.pid = child.pid
    this.#watchEnd()
    this.#collect(child.stdout, () => {})
    this.#collect(child.stderr, (text) => {
      this.#lastWords = (this.#lastWords + text).slice(-LAST_WORDS)
    })
    const pipe = child.stdio[3]
    if (!(pipe instanceof Duplex)) return
    this.#channel = new Channel(pipe, {
      clock,
      answer: (question) => inquiries.answer(question),
      note: (text) => output.note(text),
      onAbuse: (reason) => this.unload(reason),
      hear: (message) => {
        if (message.type === 'ready') this.#ready.resolve(true)
        else if (message.type === 'crash') this.#reason ??= message.message
        else inquiries.hear(message)
      },
    })
  }

  tell(message: HubMessage): void {
    this.#channel?.tell(message)
  }

  /** Sends a request to the app's own web API. @throws HubError */
  async request({ method, path, query, body }: AppRequest): Promise<unknown> {
    const question = { type: 'request', method, path, query: Object.fromEntries(query), body: body ?? null } as const
    return await this.#channel?.ask(question)
  }

  /** Resolves when the garbage is collected. @throws HubError 503 if the app hangs */
  async collectGarbage(): Promise<void> {
    await this.#channel?.ask({ type: 'gc' })
  }

  /** The usage measured by the process itself, for systems on which the hub cannot measure it. */
  async ownUsage(): Promise<unknown> {
    return await this.#channel?.ask({ type: 'usage' })
  }

  /** Asks the process to end, and kills it if it does not. */
  stop(): Promise<End> {
    // A process that has just ended by itself was not asked to.
    if (this.#asked || this.#gone) return this.ended
    this.#asked = true
    this.#child.kill('SIGTERM')
    this.#cancelKill = this.#clock.after(GRACE_MS, () => {
      this.#output.note(`did not end within ${GRACE_MS / 1000} s of SIGTERM: SIGKILL`)
      this.#child.kill('SIGKILL')
    })
    return this.ended
  }

  /** Kills it at once, as a crash with this message. */
  unload(reason: string): void {
    this.#output.note(reason)
    this.#reason ??= reason
    this.#child.kill('SIGKILL')
  }

  /** Limit the rate: an app that writes faster than this must wait. */
  #collect(stream: Readable | null, hear: (text: string) => void): void {
    if (stream === null) return
    const allowance = allow(OUTPUT_PER_SECOND, this.#clock, () => stream.resume())
    this.#limits.push(allowance)
    const output = this.#output.stream()
    stream.on('error', () => {})
    stream.on('end', output.end)
    stream.on('data', (chunk: Buffer) => {
      output.add(chunk)
      hear(chunk.toString('utf8'))
      if (this.#gone) return
      allowance.use(chunk.length)
      if (allowance.isExhausted()) stream.pause()
    })
  }

  #watchEnd(): void {
    const child = this.#child
    child.once('exit', () => {
      this.#gone = true
      this.#cancelKill?.()
      // Read the rest of the pipes without a limit: it cannot be much.
      for (const limit of this.#limits) limit.stop()
      this.#channel?.drain()
      child.stdout?.resume()
      child.stderr?.resume()
    })
    child.once('error', (error) => {
      this.#reason ??= `Error: the process did not start: ${error.message}`
      if (child.pid === undefined) this.#finish(null, null)
    })
    child.once('close', (code, signal) => this.#finish(code, signal))
  }

  #finish(code: number | null, signal: string | null): void {
    this.#channel?.end()
    this.#ready.resolve(false)
    this.#ended.resolve({ asked: this.#asked, code, signal, message: this.#reason ?? this.#guess(code, signal) })
  }

  /** When the heap is full, V8 prints that as the process ends; no JavaScript runs any more. */
  #guess(code: number | null, signal: string | null): string {
    const fatal = /^FATAL ERROR: .*$/m.exec(this.#lastWords)?.[0]
    if (fatal !== undefined) return fatal
    return signal === null ? `Error: exited with code ${code}` : `Error: ended by ${signal}`
  }
}

/** Options that confine the app and end it with the hub. The permission model does not cover SQLite. */
async function commandLine({ id, version, folder, main, memoryLimit }: Launch) {
  const node = [
    '--permission',
    // Resolve links: the permission model compares real paths.
    `--allow-fs-read=${await realpath(folder)}`,
    `--allow-fs-read=${SDK}`,
    '--no-experimental-sqlite',
    '--disable-sigusr1',
    '--expose-gc',
    `--max-old-space-size=${Math.max(16, Math.round(memoryLimit / 1024 / 1024))}`,
    `${SDK}runner.js`,
    id,
    version,
    main,
  ]
  endsWithHub ??= findWrapper()
  const wrapper = await endsWithHub
  if (wrapper === undefined) return { file: process.execPath, args: node }
  return { file: wrapper, args: [...WRAPPING, '--', process.execPath, ...node] }
}

const WRAPPING = ['--pdeathsig', 'KILL']
const PLACES = ['/usr/bin/setpriv', '/bin/setpriv']
let endsWithHub: Promise<string | undefined> | undefined

/**
 * On Linux, the kernel can end a process with its parent, even if it is busy. Elsewhere, the end of the pipe to the hub
 * ends it, once the app returns to its event loop.
 */
async function findWrapper(): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined
  for (const place of PLACES) if (await runs(place)) return place
  return undefined
}

function runs(place: string): Promise<boolean> {
  const run = promisify(execFile)(place, [...WRAPPING, '--', process.execPath, '--version'], { timeout: 5000 })
  return run.then(() => true).catch(() => false)
}
