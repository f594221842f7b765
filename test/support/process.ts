/** Child processes of tests: started, listened to, asked, and ended whatever happens. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { accepts } from './ports.ts'
import { until } from './until.ts'

/** Lines kept of each output; the oldest go first. */
const MOST_LINES = 100_000
const PATIENCE_MS = 10_000

/**
 * What children share whatever their environment is: compiled code. With coverage they do without it, which knows of
 * functions from the cache only whether they were called at all.
 */
const SHARED: NodeJS.ProcessEnv =
  process.env['NODE_V8_COVERAGE'] === undefined
    ? { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }
    : { NODE_DISABLE_COMPILE_CACHE: '1' }

const running = new Set<ChildProcess>()
/** Those that lead a group of processes, as what is started in a terminal does. */
const leaders = new WeakSet<ChildProcess>()
// A run that is broken off leaves nothing behind.
process.once('exit', () => {
  for (const child of running) send(child, 'SIGKILL')
})

function send(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid !== undefined && leaders.has(child)) process.kill(-child.pid, signal)
  else child.kill(signal)
}

/** Lets Ctrl-C and SIGTERM end a program through `exit`, where its children end with it. */
export function exitOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
}

export interface ProcessOptions {
  /** The whole environment; default: that of this process. */
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
  /** `keep` (default) as lines, `drop`, or a file descriptor. */
  readonly output?: 'keep' | 'drop' | number
  /** Whether messages go to and fro, as with `fork`. */
  readonly channel?: boolean
  /** Whether its own children get its signals too, as Ctrl-C in a terminal reaches all of them. */
  readonly group?: boolean
}

export class Process implements AsyncDisposable {
  /** Epoch milliseconds. */
  readonly startedAt = Date.now()
  endedAt: number | undefined
  /** How it ended, if it has: `code 0`, `signal SIGKILL`. */
  end: string | undefined
  /** Standard output and standard error, line by line. */
  readonly lines: string[] = []
  readonly errors: string[] = []
  /** Resolves with `end`, when all that was written has been read too. */
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

  /** @throws Error if it has ended */
  get pid(): number {
    if (!this.alive || this.#child.pid === undefined) throw this.#failure('has no pid')
    return this.#child.pid
  }

  /** The first line, of whichever output, that has the text in it; rejects when it ends without. */
  untilLine(text: string, ms = PATIENCE_MS): Promise<string> {
    const has = (line: string) => line.includes(text)
    return this.#until(`"${text}"`, () => this.lines.find(has) ?? this.errors.find(has), ms)
  }

  /** Resolves when it accepts connections on a port of 127.0.0.1; rejects when it ends instead. */
  async untilPort(port: number, ms = PATIENCE_MS): Promise<void> {
    await this.#until(`port ${port}`, () => accepts(port), ms)
    // It may be somebody else who listens there.
    if (!this.alive) throw this.#failure('does not start')
  }

  /** A signal, and no waiting: it may be no end, as SIGSTOP is none. */
  signal(signal: NodeJS.Signals): void {
    if (this.alive) send(this.#child, signal)
  }

  /** Asks it to end, or ends it, and waits for that; one that takes longer than `patienceMs` is killed. */
  async stop(signal: NodeJS.Signals = 'SIGTERM', patienceMs = PATIENCE_MS): Promise<void> {
    if (!this.alive) return
    send(this.#child, signal)
    const kill = setTimeout(() => send(this.#child, 'SIGKILL'), patienceMs)
    await this.#ended
    clearTimeout(kill)
  }

  /** What becomes of its standard output: nobody reads it for a while (`stall`), or ever again (`break`). */
  output(what: 'stall' | 'resume' | 'break'): void {
    const { stdout } = this.#child
    if (what === 'break') stdout?.destroy()
    else if (what === 'stall') stdout?.pause()
    else stdout?.resume()
  }

  /** Sends a message over its channel. */
  tell(message: object): void {
    if (this.alive && this.#child.connected) this.#child.send(message, () => undefined)
  }

  /** Sends a message and resolves with the next that comes back: one question at a time. */
  async ask(message: object): Promise<unknown> {
    const answer = once(this.#child, 'message')
    this.tell(message)
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
    if (lines.push(line) > MOST_LINES) lines.shift()
  })
}

export interface Ran {
  /** Null if a signal ended it. */
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  /** The whole environment; default: that of this process. */
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
}

/** Runs a program to its end, whatever that is; rejects only if there is no such program. */
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

/** Runs a program and returns all that it printed; rejects with that unless it ends well. */
export async function execute(command: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const { status, stdout, stderr } = await runProgram(command, args, options)
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}\n${stdout}${stderr}`)
  return stdout + stderr
}
