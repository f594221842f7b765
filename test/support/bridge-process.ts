/** The bridge as its users run it: a process of its own. */
import { fileURLToPath } from 'node:url'
import { Process } from './process.ts'
import { PROGRAM, SOURCES } from './program.ts'
import { ownerOf } from './start-token.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export interface BridgeProcessOptions {
  /** The file that starts it; default: that of the bundle, or of the sources if modules are to be loaded before them. */
  readonly program?: string
  /** All of its environment but PATH and HOME: configuration as `HUB2MQTT_…`. */
  readonly env?: Readonly<Record<string, string>>
  /** Path of a configuration file. */
  readonly config?: string
  /** Modules to load before the program, as URLs. */
  readonly preload?: readonly string[]
  readonly nodeOptions?: readonly string[]
  /** Whether its log is kept; default true. */
  readonly logs?: boolean
  /** Whether messages go to and fro, for preloaded modules. */
  readonly channel?: boolean
}

export class BridgeProcess extends Process {
  /** How it had to end, as `end` says it; undefined: not at all. */
  wantedEnd: string | undefined
  /** From the signal to the end, in milliseconds. */
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

  /** The address that it prints for who started it; only a daemon without a password prints one. */
  async page(): Promise<string> {
    const line = await this.untilLine('?token=', 30_000)
    return /http:\S+/.exec(line)?.[0] ?? line
  }

  /** What a request with the rights of who started it brings. */
  async owner(): Promise<{ readonly authorization: string }> {
    return ownerOf(await this.page())
  }

  override async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (!this.alive) return
    this.wantedEnd = signal === 'SIGKILL' ? 'signal SIGKILL' : 'code 0'
    const signalledAt = performance.now()
    await super.stop(signal)
    this.endedWithinMs = performance.now() - signalledAt
  }
}
