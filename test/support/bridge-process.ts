/** The bridge in a separate process, as users run it. */
import { fileURLToPath } from 'node:url'
import { Process } from './process.ts'
import { PROGRAM, SOURCES } from './program.ts'
import { ownerOf } from './start-token.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export interface BridgeProcessOptions {
  /** The file to start; default: the bundle, or the sources if there are modules to preload. */
  readonly program?: string
  /** The environment without PATH and HOME. It contains the configuration as `HUB2MQTT_…`. */
  readonly env?: Readonly<Record<string, string>>
  readonly config?: string
  /** Modules to load before the program, as URLs. */
  readonly preload?: readonly string[]
  readonly nodeOptions?: readonly string[]
  /** Whether to keep the log; default: `true`. */
  readonly logs?: boolean
  /** Whether to open an IPC channel, which preloaded modules need. */
  readonly channel?: boolean
}

export class BridgeProcess extends Process {
  /** The expected value of `end`; `undefined` if the process must still be running. */
  expectedEnd: string | undefined
  endedWithinMs: number | undefined

  constructor(options: BridgeProcessOptions) {
    const {
      env,
      config,
      preload = [],
      program = preload.length === 0 ? PROGRAM : SOURCES,
      nodeOptions = [],
      logs = true,
      channel = false,
    } = options
    const imports = preload.flatMap((url) => ['--import', url])
    const file = config === undefined ? [] : ['--config', config]
    super(process.execPath, [...nodeOptions, ...imports, program, 'run', ...file], {
      cwd: ROOT,
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
      output: logs ? 'keep' : 'drop',
      channel,
    })
  }

  /** Rejects when the process exits. */
  get ended(): Promise<never> {
    return this.closed.then((end) => Promise.reject(new Error(`the bridge has ended: ${end}`)))
  }

  /** Resolves with the address that a daemon without a password prints for the user who started it. */
  async page(): Promise<string> {
    const line = await this.untilLine('?token=', 30_000)
    return /http:\S+/.exec(line)?.[0] ?? line
  }

  async owner(): Promise<{ readonly authorization: string }> {
    return ownerOf(await this.page())
  }

  override async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (!this.alive) return
    this.expectedEnd = signal === 'SIGKILL' ? 'signal SIGKILL' : 'code 0'
    const signalledAt = performance.now()
    await super.stop(signal)
    this.endedWithinMs = performance.now() - signalledAt
  }
}
