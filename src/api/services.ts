/** What the routes of the API do: with the bridge's own commands and topics, and with nothing else of the hub. */
import type { Clock } from '../base/clock.ts'
import type { Asker, Reply } from '../bridge/dispatcher.ts'
import { isErrorCode } from '../contract/errors.ts'
import type { Role } from '../contract/schemas.ts'
import { decodeLevel, encodeLevel } from '../contract/templates.ts'
import type { Topics } from '../contract/topics.ts'
import type { Message } from '../mqtt/types.ts'
import { STATUS_OF } from './answers.ts'
import type { Feed } from './feed.ts'
import type { Session } from './protocol.ts'
import { type ApiReply, type Caller, refuse } from './routes.ts'

export interface ServicesOptions {
  readonly topics: Topics
  readonly feed: Feed
  /** The bridge's door for commands. */
  readonly bridge: { command(message: Message, asker: Asker): boolean; readonly role: Role }
  /** Takes secrets out of an answer. */
  readonly clean: (payload: string) => string
  /** Whether a login is possible. */
  readonly hasPassword: () => boolean
  readonly isSetup: () => boolean
  readonly version: string
  readonly clock: Clock
}

export class Services {
  readonly #options: ServicesOptions

  constructor(options: ServicesOptions) {
    this.#options = options
  }

  session({ access }: Caller): Session {
    const { topics, version, hasPassword, isSetup } = this.#options
    return {
      access,
      login: hasPassword() ? 'password' : 'none',
      version,
      base_topic: topics.base,
      setup: isSetup(),
    }
  }

  state(): ReadonlyMap<string, string> {
    return this.#options.feed.state
  }

  /** Hands a command to the bridge, and waits for the answer for as long as the command may take. */
  async command(levels: readonly string[], payload: Buffer, by: string): Promise<ApiReply> {
    const { topics, bridge, clean, clock } = this.#options
    const topic = commandTopic(topics.base, levels)
    if (topic === undefined) return refuse(404, 'unknown_command', 'The path names no command.')
    const { promise, resolve } = Promise.withResolvers<Reply>()
    const message: Message = {
      topic,
      payload,
      retain: false,
      dup: false,
      qos: 1,
      receivedAt: clock.elapsed(),
      // None: it goes on whatever becomes of the broker's.
      connection: 0,
    }
    if (!bridge.command(message, { by, reply: resolve })) return refuse(503, 'standby', STANDBY[bridge.role])
    const answer = await promise
    return { status: isErrorCode(answer.code) ? STATUS_OF[answer.code] : 200, body: `${clean(answer.payload)}\n` }
  }
}

const STANDBY: Readonly<Record<Role, string>> = {
  active: 'hub2mqtt is stopping.',
  standby: 'Another hub2mqtt with the same base topic is active; this one stands by.',
  undecided: 'hub2mqtt is not connected to its broker yet, and does not know whether another one is active.',
}

/** `home/app/com.x/restart` → `hub2mqtt/home/app/com.x/cmd/restart`; `undefined` for what names no command. */
export function commandTopic(base: string, segments: readonly string[]): string | undefined {
  const levels = segments.map(levelOf)
  const at = levels[1] === 'app' ? 3 : 1
  if (levels.length <= at || levels.includes(undefined)) return undefined
  return [base, ...levels.slice(0, at), 'cmd', ...levels.slice(at)].join('/')
}

/** A segment of a path as a topic's level, whichever characters the client has percent-encoded. */
function levelOf(segment: string): string | undefined {
  if (decodeLevel(segment) !== undefined) return segment
  try {
    return encodeLevel(decodeURIComponent(segment))
  } catch {
    return undefined
  }
}
