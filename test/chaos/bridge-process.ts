/** The bridge as its users run it: a process of its own, with all that it says written down. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Life } from './history.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const children = new Set<ChildProcess>()
// A run that is broken off leaves nothing behind.
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

export interface BridgeSettings {
  readonly env: Readonly<Record<string, string>>
  /** Modules to load before the program, as `--import` does. */
  readonly preload?: readonly string[]
  readonly nodeOptions?: readonly string[]
}

export class BridgeProcess implements Life {
  readonly startedAt = Date.now()
  endedAt: number | undefined
  readonly lines: string[] = []
  readonly errors: string[] = []
  end: string | undefined
  wantedEnd: string | undefined
  endedWithinMs: number | undefined
  readonly child: ChildProcess
  readonly #ended: Promise<void>
  #signalledAt: number | undefined

  constructor({ env, preload = [], nodeOptions = [] }: BridgeSettings) {
    const imports = preload.flatMap((name) => ['--import', new URL(name, import.meta.url).href])
    this.child = spawn(process.execPath, [...nodeOptions, ...imports, 'src/main.ts', 'run'], {
      cwd: root,
      env: { PATH: process.env['PATH'], ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    children.add(this.child)
    collect(this.child.stdout, this.lines)
    collect(this.child.stderr, this.errors)
    this.child.on('error', (error) => this.errors.push(String(error)))
    this.#ended = new Promise((resolve) => {
      this.child.once('exit', (code, signal) => {
        children.delete(this.child)
        this.endedAt = Date.now()
        this.end = signal === null ? `code ${code}` : `signal ${signal}`
        if (this.#signalledAt !== undefined) this.endedWithinMs = performance.now() - this.#signalledAt
        resolve()
      })
    })
  }

  get alive(): boolean {
    return this.end === undefined
  }

  /** Asks it to end, or ends it, and waits; one that does not end within ten seconds is killed, which is then its end. */
  async stop(signal: 'SIGTERM' | 'SIGINT' | 'SIGKILL'): Promise<void> {
    if (!this.alive) return
    this.wantedEnd = signal === 'SIGKILL' ? 'signal SIGKILL' : 'code 0'
    this.#signalledAt = performance.now()
    this.child.kill(signal)
    const patience = setTimeout(() => this.child.kill('SIGKILL'), 10_000)
    await this.#ended
    clearTimeout(patience)
  }

  /** A signal that is no end: SIGSTOP, SIGCONT. */
  signal(signal: NodeJS.Signals): void {
    if (this.alive) this.child.kill(signal)
  }

  /** Nobody reads its log any more: the pipe fills (`stall`) or is broken (`break`). */
  log(what: 'stall' | 'resume' | 'break'): void {
    const output = this.child.stdout
    if (what === 'break') output?.destroy()
    else if (what === 'stall') output?.pause()
    else output?.resume()
  }

  /** A message for a preloaded module. */
  tell(message: object): void {
    if (this.alive && this.child.connected) this.child.send(message, () => undefined)
  }
}

function collect(stream: Readable | null, lines: string[]): void {
  if (stream === null) return
  stream.on('error', () => undefined)
  createInterface({ input: stream }).on('line', (line) => lines.push(line))
}
