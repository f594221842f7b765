/** The bridge as users run it: a process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'

const MAIN = join(import.meta.dirname, '../../../src/main.ts')
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

export class BridgeProcess implements AsyncDisposable {
  readonly lines: string[] = []
  readonly #config: string
  #child: ChildProcess | undefined

  /** Runs with the configuration file at `config`. */
  constructor(config: string) {
    this.#config = config
    this.run()
  }

  /** Runs, with further configuration as environment variables. */
  run(env: Readonly<Record<string, string>> = {}): void {
    const child = spawn(process.execPath, [MAIN, 'run', '--config', this.#config], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
    })
    this.#child = child
    running.add(child)
    child.once('exit', () => running.delete(child))
    child.stdout.on('data', (chunk: Buffer) => this.lines.push(...chunk.toString().split('\n')))
  }

  async stop(): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    child.kill('SIGTERM')
    await exited
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}
