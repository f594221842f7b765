/** Runs the child processes of tests, and makes sure that they end. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { accepts } from './ports.ts'
import { until } from './until.ts'

/** The maximum number of lines kept for each output; the oldest lines are discarded first. */
const MAX_LINES = 100_000
const TIMEOUT_MS = 10_000

/**
 * Variables that let the children share compiled code. While coverage is measured, they do not share it, because V8
 * would only report whether a cached function was called at all.
 */
const SHARED: NodeJS.ProcessEnv =
  process.env['NODE_V8_COVERAGE'] === undefined
    ? { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }
    : { NODE_DISABLE_COMPILE_CACHE: '1' }

const running = new Set<ChildProcess>()
/** The children that lead a process group, like a command in a terminal. */
const leaders = new WeakSet<ChildProcess>()
// Kill all children at the end, so that an interrupted run leaves no processes behind.
process.once('exit', () => {
  for (const child of running) send(child, 'SIGKILL')
})

function send(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid !== undefined && leaders.has(child)) process.kill(-child.pid, signal)
  else child.kill(signal)
}

/** Makes SIGINT and SIGTERM exit this program with `process.exit`, which also kills its children. */
export function exitOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
}

export interface ProcessOptions {
  /** Variables in addition to `SHARED`; default: those of this process. */
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
  /** `keep` (default) keeps the lines, `drop` ignores them, and a number is a file descriptor for the output. */
  readonly output?: 'keep' | 'drop' | number
  /** Whether to open an IPC channel, as with `fork`. */
  readonly channel?: boolean
  /** Whether signals also reach the children of the process, as with Ctrl-C in a terminal. */
  readonly group?: boolean
}

export class Process implements AsyncDisposable {
  /** The time at which the process was started, in epoch milliseconds. */
  readonly startedAt = Date.now()
  endedAt: number | undefined
  /** How the process ended, such as `code 0` or `signal SIGKILL`; `undefined` while the process is running. */
  end: string | undefined
  readonly lines: string[] = []
  readonly errors: string[] = []
  /** Resolves with `end`, after all output has been read. */
  readonly closed: Promise<string>
  readonly #child: ChildProcess
  readonly #ended: Promise<void>
  readonly #name: string

  constructor(command: string, args: readonly string[], options: ProcessOptions = {}) {
    const { env, cwd, output = 'keep', channel = false, group = false } = options
    const stdout = output === 'keep' ? 'pipe' : output === 'drop' ? 'ignore' : output
    const child = spawn(command, args, {
      env: { ...SHARED, ...(env ?? process.env) },
      cwd,
      detached: group,
      stdio: ['ignore', stdout, 'pipe', ...(channel ? ['ipc' as const] : [])],
    })
    if (group) leaders.add(child)
    this.#child = child
    this.#name = [command, ...args].join(' ').slice(0, 200)
    running.add(child)
    keepLines(child.stdout, this.lines)
    keepLines(child.stderr, this.errors)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#ended = promise
    const ended = (end: string) => {
      running.delete(child)
      this.endedAt = Date.now()
      this.end = end
      resolve()
    }
    child.once('exit', (code, signal) => ended(signal === null ? `code ${code}` : `signal ${signal}`))
    child.once('error', (error) => {
      this.errors.push(String(error))
      if (child.pid === undefined) ended('no start')
    })
    this.closed = once(child, 'close').then(
      () => this.end ?? 'no start',
      () => this.end ?? 'no start',
    )
  }

  get alive(): boolean {
    return this.end === undefined
  }

  /** @throws Error if the process has exited */
  get pid(): number {
    if (!this.alive || this.#child.pid === undefined) throw this.#failure('has no pid')
    return this.#child.pid
  }

  /** Resolves with the first line of either output that contains the text; rejects if the process exits before that. */
  untilLine(text: string, ms = TIMEOUT_MS): Promise<string> {
    const has = (line: string) => line.includes(text)
    return this.#until(`"${text}"`, () => this.lines.find(has) ?? this.errors.find(has), ms)
  }

  /** Resolves when a port of 127.0.0.1 accepts connections; rejects if the process exits before that. */
  async untilPort(port: number, ms = TIMEOUT_MS): Promise<void> {
    await this.#until(`port ${port}`, () => accepts(port), ms)
    // Check the process, because another process may be listening on the port.
    if (!this.alive) throw this.#failure('does not start')
  }

  /** Sends a signal without waiting for the process to exit. */
  signal(signal: NodeJS.Signals): void {
    if (this.alive) send(this.#child, signal)
  }

  /** Sends a signal and waits for the process to exit; kills it after `timeoutMs`. */
  async stop(signal: NodeJS.Signals = 'SIGTERM', timeoutMs = TIMEOUT_MS): Promise<void> {
    if (!this.alive) return
    send(this.#child, signal)
    const kill = setTimeout(() => send(this.#child, 'SIGKILL'), timeoutMs)
    await this.#ended
    clearTimeout(kill)
  }

  /** Stops reading the standard output (`stall`), reads it again (`resume`), or closes the pipe (`break`). */
  output(what: 'stall' | 'resume' | 'break'): void {
    const { stdout } = this.#child
    if (what === 'break') stdout?.destroy()
    else if (what === 'stall') stdout?.pause()
    else stdout?.resume()
  }

  send(message: object): void {
    if (this.alive && this.#child.connected) this.#child.send(message, () => undefined)
  }

  /** Resolves with the next message from the process. Supports only one request at a time. */
  async request(message: object): Promise<unknown> {
    const answer = once(this.#child, 'message')
    this.send(message)
    const [found]: unknown[] = await Promise.race([
      answer,
      this.#ended.then(() => {
        throw this.#failure('does not answer')
      }),
    ])
    return found
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  #until<T>(what: string, probe: () => T | undefined | false | Promise<T | undefined | false>, ms: number): Promise<T> {
    const found = () => {
      if (!this.alive) throw this.#failure(`ended before ${what}`)
      return probe()
    }
    return until(`${what} of ${this.#name}`, found, ms).catch((error: Error) => {
      throw this.alive ? this.#failure(error.message) : error
    })
  }

  #failure(what: string): Error {
    const written = [...this.errors.slice(-10), ...this.lines.slice(-10)].join('\n')
    return new Error(`${this.#name} (${this.end ?? 'running'}) ${what}\n${written}`)
  }
}

function keepLines(stream: Readable | null, lines: string[]): void {
  if (stream === null) return
  stream.on('error', () => undefined)
  createInterface({ input: stream }).on('line', (line) => {
    if (lines.push(line) > MAX_LINES) lines.shift()
  })
}

export interface Ran {
  /** The exit code; `null` if a signal terminated the program. */
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  /** The whole environment; default: that of this process. */
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
}

/** Runs a program to its end; rejects only if the program does not exist. */
export function runProgram(command: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const env = { ...SHARED, ...(options.env ?? process.env) }
    const child = execFile(command, args, { ...options, env, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      running.delete(child)
      if (child.pid === undefined) reject(error)
      else resolve({ status: child.exitCode, stdout, stderr })
    })
    running.add(child)
  })
}

/** Returns the output of a program; rejects with the output if the exit code is not 0. */
export async function execute(command: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const { status, stdout, stderr } = await runProgram(command, args, options)
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}\n${stdout}${stderr}`)
  return stdout + stderr
}
