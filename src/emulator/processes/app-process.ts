/** One run of an app: its process, from start to exit. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { realpath } from 'node:fs/promises'
import { Duplex, type Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import { ROOT } from '../../base/root.ts'
import { type Allowance, allow } from './allowance.ts'
import { type AppNotice, type Channel, type HubMessage, openChannel, type RequestFromApp } from './channel.ts'
import type { Output } from './output.ts'

/** The folder that every app may read in addition to its own. */
export const SDK = fileURLToPath(new URL('src/emulator/sdk/', ROOT))

interface Launch {
  readonly id: string
  readonly version: string
  /** Absolute path of the app's folder. */
  readonly folder: string
  /** Path of the app's main file, relative to the folder. */
  readonly main: string
  /** Maximum heap size, in bytes. */
  readonly memoryLimit: number
}

export interface End {
  /** Whether the hub stopped the process; otherwise the process crashed. */
  readonly requested: boolean
  readonly code: number | null
  readonly signal: string | null
  /** The cause of a crash: the stack, or a message derived from the last output, the exit code or the signal. */
  readonly message: string
}

export interface AppHandlers {
  /** Answers a request from the app. @throws HubError if the hub refuses */
  answer(request: RequestFromApp): unknown
  notice(notice: AppNotice): void
}

/** Time between SIGTERM and SIGKILL. */
const GRACE_MS = 2000
const OUTPUT_PER_SECOND = 1024 * 1024
/** Number of characters that are kept to find out why the process exited. */
const LAST_OUTPUT_LENGTH = 8192

export class AppProcess {
  readonly pid: number | undefined
  readonly #child: ChildProcess
  readonly #clock: Clock
  readonly #output: Output
  readonly #channel: Channel | undefined
  readonly #ready = Promise.withResolvers<boolean>()
  readonly #ended = Promise.withResolvers<End>()
  /** Resolves to `true` when the app has started, or to `false` if the process exits before that. */
  readonly ready = this.#ready.promise
  readonly ended = this.#ended.promise
  readonly #limits: Allowance[] = []
  #lastOutput = ''
  #reason: string | undefined
  #requested = false
  /** Whether the process has exited; its pipes may still contain output. */
  #hasEnded = false
  #cancelKill: (() => void) | undefined

  /** Starts a process. Resolves when the process exists, before `ready` and `ended` resolve. */
  static async start(launch: Launch, ...rest: readonly [Clock, Output, AppHandlers]): Promise<AppProcess> {
    const { file, args } = await commandLine(launch)
    const stdio = ['ignore', 'pipe', 'pipe', 'pipe'] as const
    const child = spawn(file, args, { cwd: launch.folder, env: {}, stdio: [...stdio] })
    return new AppProcess(child, ...rest)
  }

  private constructor(child: ChildProcess, clock: Clock, output: Output, handlers: AppHandlers) {
    this.#child = child
    this.#clock = clock
    this.#output = output
    this.pid = child.pid
    this.#watchEnd()
    this.#collect(child.stdout, () => {})
    this.#collect(child.stderr, (text) => {
      this.#lastOutput = (this.#lastOutput + text).slice(-LAST_OUTPUT_LENGTH)
    })
    const pipe = child.stdio[3]
    if (!(pipe instanceof Duplex)) return
    this.#channel = openChannel(pipe, {
      clock,
      answer: (request) => handlers.answer(request),
      note: (text) => output.note(text),
      onAbuse: (reason) => this.unload(reason),
      notice: (message) => {
        if (message.type === 'ready') this.#ready.resolve(true)
        else if (message.type === 'crash') this.#reason ??= message.message
        else handlers.notice(message)
      },
    })
  }

  send(message: HubMessage): void {
    this.#channel?.send(message)
  }

  /** Sends a request, and resolves to the answer. @throws HubError 503 if the app hangs, or the app's own refusal */
  async request(request: Parameters<Channel['request']>[0]): Promise<unknown> {
    return await this.#channel?.request(request)
  }

  stop(): Promise<End> {
    // If the process has just exited by itself, do not count its exit as requested.
    if (this.#requested || this.#hasEnded) return this.ended
    this.#requested = true
    this.#child.kill('SIGTERM')
    this.#cancelKill = this.#clock.after(GRACE_MS, () => {
      this.#output.note(`did not end within ${GRACE_MS / 1000} s of SIGTERM: SIGKILL`)
      this.#child.kill('SIGKILL')
    })
    return this.ended
  }

  /** Kills the process. This counts as a crash with `reason` as the message. */
  unload(reason: string): void {
    this.#output.note(reason)
    this.#reason ??= reason
    this.#child.kill('SIGKILL')
  }

  /** Collects output at a limited rate, so that an app that writes faster must wait. */
  #collect(stream: Readable | null, onText: (text: string) => void): void {
    if (stream === null) return
    const allowance = allow(OUTPUT_PER_SECOND, this.#clock, () => stream.resume())
    this.#limits.push(allowance)
    const output = this.#output.stream()
    stream.on('error', () => {})
    stream.on('end', output.end)
    stream.on('data', (chunk: Buffer) => {
      output.add(chunk)
      onText(chunk.toString('utf8'))
      if (this.#hasEnded) return
      allowance.use(chunk.length)
      if (allowance.isExhausted()) stream.pause()
    })
  }

  #watchEnd(): void {
    const child = this.#child
    child.once('exit', () => {
      this.#hasEnded = true
      this.#cancelKill?.()
      // Read the remaining output without a limit, because only little data can remain in a pipe.
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
    const message = this.#reason ?? this.#guess(code, signal)
    this.#ended.resolve({ requested: this.#requested, code, signal, message })
  }

  /** Returns a crash message: the fatal error that V8 prints if the heap is full, or the exit code or signal. */
  #guess(code: number | null, signal: string | null): string {
    const fatal = /^FATAL ERROR: .*$/m.exec(this.#lastOutput)?.[0]
    if (fatal !== undefined) return fatal
    return signal === null ? `Error: exited with code ${code}` : `Error: ended by ${signal}`
  }
}

/** Builds a command that restricts the app, and terminates it when the hub exits. */
async function commandLine({ id, version, folder, main, memoryLimit }: Launch) {
  const node = [
    '--permission',
    // Resolve links, because the permission model compares real paths.
    `--allow-fs-read=${await realpath(folder)}`,
    `--allow-fs-read=${SDK}`,
    // Disable SQLite, because the permission model does not cover it.
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
 * On Linux, finds a program that makes the kernel kill an app, even a busy one, when the hub exits. Without it,
 * an app exits only when it returns to its event loop and finds its pipe to the hub closed.
 */
async function findWrapper(): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined
  for (const place of PLACES) {
    const run = promisify(execFile)(place, [...WRAPPING, '--', process.execPath, '--version'], { timeout: 5000 })
    if (await run.then(() => true).catch(() => false)) return place
  }
  return undefined
}
