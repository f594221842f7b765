/** What the routes of the API do: with the bridge's own commands and topics, and with no other way into the hub. */
import { readFile } from 'node:fs/promises'
import { ROOT } from '../../../base/root.ts'
import { describeConfig } from '../../../config/describe.ts'
import type { Live } from '../../../config/options.ts'
import { HubError } from '../../../hub/errors.ts'
import { type CommandDoor, runCommand } from './command.ts'
import type { Feed } from './feed.ts'
import { type Hubs, type Icon, Icons } from './icons.ts'
import type { ConfigReport, DoctorReport, Session } from './protocol.ts'
import type { ApiReply, ApiRequest, Caller } from './reply.ts'
import type { SetupDoor } from './setup.ts'

export interface ServicesOptions extends CommandDoor {
  readonly hubs: Hubs
  readonly feed: Feed
  readonly live: Live
  /** The configuration file. */
  readonly path: string | null
  readonly login: () => Session['login']
  readonly version: string
  /** While no hub is configured. */
  readonly setup?: SetupDoor
}

/** Beside the program, in a checkout and in the package. */
const OPENAPI = new URL('config/openapi.json', ROOT)

export class Services {
  readonly #options: ServicesOptions
  readonly #icons: Icons
  #examining: Promise<string> | undefined

  constructor(options: ServicesOptions) {
    this.#options = options
    this.#icons = new Icons(options.hubs)
  }

  get setup(): SetupDoor | undefined {
    return this.#options.setup
  }

  session({ access }: Caller): Session {
    const { topics, version, login } = this.#options
    return {
      access,
      login: login(),
      version,
      base_topic: topics.base,
      member: topics.member,
      setup: this.setup !== undefined,
    }
  }

  state({ access }: Caller): Record<string, string> {
    return Object.fromEntries(this.#options.feed.state({ settings: access !== 'local' }))
  }

  command(request: ApiRequest): Promise<ApiReply> {
    return runCommand(this.#options, request)
  }

  /** `undefined`: there is none, or the hub does not say. */
  async icon(hub: string, app: string): Promise<Icon | undefined> {
    try {
      return await this.#icons.get(hub, app)
    } catch (error) {
      if (error instanceof HubError) return undefined
      throw error
    }
  }

  config(): ConfigReport {
    const { live, path } = this.#options
    return { text: describeConfig(live.value), path }
  }

  /** One at a time: who asks meanwhile gets the same. */
  async doctor(): Promise<DoctorReport> {
    this.#examining ??= this.#examine().finally(() => {
      this.#examining = undefined
    })
    return { text: await this.#examining }
  }

  async #examine(): Promise<string> {
    const { live, version, clock } = this.#options
    // Few ask for it; most need not load it.
    const { doctorReport } = await import('./doctor.ts')
    return await doctorReport(live, version, clock)
  }

  async openapi(): Promise<string> {
    return await readFile(OPENAPI, 'utf8')
  }
}
