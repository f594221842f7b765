/** A command that comes over HTTP: its topic from the path, its payload from the body, its answer as the reply. */
import type { Clock } from '../../../base/clock.ts'
import type { Reply, Requester } from '../../../bridge/requests.ts'
import { findCommand } from '../../../contract/commands.ts'
import type { Role } from '../../../contract/schemas.ts'
import { decodeLevel, encodeLevel } from '../../../contract/templates.ts'
import type { Topics } from '../../../contract/topics.ts'
import type { Message } from '../../../mqtt/types.ts'
import { STATUS_OF } from './answers.ts'
import { type ApiReply, type ApiRequest, refuse } from './reply.ts'

export interface CommandDoor {
  readonly topics: Topics
  /** The bridge's door for commands. */
  readonly bridge: { command(message: Message, requester: Requester): boolean; readonly role: Role }
  /** Takes secrets out of an answer. */
  readonly clean: (payload: string) => string
  readonly clock: Clock
}

/** Hands a command to the bridge, and waits for the answer for as long as the command may take. */
export async function runCommand(door: CommandDoor, { rest, body, isJson, caller }: ApiRequest): Promise<ApiReply> {
  const { topics, bridge, clean, clock } = door
  const topic = commandTopic(topics.base, rest)
  if (topic === undefined) return refuse(404, 'unknown_command', 'The path names no command.')
  const { promise, resolve } = Promise.withResolvers<Reply>()
  const message: Message = {
    topic,
    payload: isJson ? withoutQuotes(topics, topic, body) : body,
    retain: false,
    dup: false,
    qos: 1,
    receivedAt: clock.elapsed(),
    // None: it goes on whatever becomes of the broker's.
    connection: 0,
  }
  if (!bridge.command(message, { by: caller.by, reply: resolve })) return refuse(503, 'standby', STANDBY[bridge.role])
  const { outcome, payload } = await promise
  return { status: outcome.ok ? 200 : STATUS_OF[outcome.error.code], body: `${clean(payload)}\n` }
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

/** A payload that is a word or a text stands in quotes where it is sent as JSON; others are JSON themselves. */
function withoutQuotes(topics: Topics, topic: string, body: Buffer): Buffer {
  const { target, command: name, argument } = topics.parseCommand(topic) ?? {}
  const command = target && findCommand(target, name ?? '', argument !== undefined)
  const text = body.toString('utf8').trim()
  if (command === undefined || command.payload.emptyIsValue || !text.startsWith('"')) return body
  try {
    return Buffer.from(String(JSON.parse(text)))
  } catch {
    return body
  }
}
