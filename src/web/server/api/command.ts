/** Runs commands over HTTP: the path selects the topic, the request body is the payload, the response is the answer. */
import { parseJson } from '../../../base/json.ts'
import type { BridgeOptions } from '../../../bridge/bridge-options.ts'
import type { Reply as CommandReply, Requester } from '../../../bridge/requests.ts'
import { findCommand } from '../../../contract/commands.ts'
import type { UsageHistory } from '../../../contract/crash.ts'
import type { ErrorCode } from '../../../contract/errors.ts'
import { FAILURE, type Role, SUCCESS } from '../../../contract/schemas.ts'
import { decodeLevel, encodeLevel } from '../../../contract/templates.ts'
import type { Topics } from '../../../contract/topics.ts'
import type { Message } from '../../../mqtt/types.ts'
import { type Reply, refuse } from '../reply.ts'
import type { ApiRequest, Route } from './routes.ts'

const STATUS_OF: Readonly<Record<ErrorCode, number>> = {
  invalid_payload: 400,
  unknown_command: 404,
  unknown_hub: 404,
  unknown_app: 404,
  unknown_setting: 404,
  not_allowed: 403,
  retained: 400,
  expired: 408,
  busy: 429,
  unauthorized: 502,
  forbidden: 403,
  unsupported: 501,
  hub_unreachable: 503,
  hub_rejected: 502,
  hub_failed: 502,
  rate_limited: 429,
  too_large: 413,
  outcome_unknown: 504,
}

const byStatus = Map.groupBy(Object.entries(STATUS_OF), ([, status]) => status)
const failures = [...byStatus].map(([status, rows]) => {
  return [status, { doc: rows.map(([code]) => `\`${code}\``).join(', '), schema: FAILURE }] as const
})

/** The documented responses to a command by HTTP status; each failure status lists its error codes. */
export const COMMAND_ANSWERS: Route['answers'] = {
  ...Object.fromEntries(failures),
  200: { doc: 'Done.', schema: SUCCESS },
}

export interface CommandContext extends Pick<BridgeOptions, 'topics' | 'clock'> {
  readonly bridge: {
    command(message: Message, requester: Requester): boolean
    readonly role: Role
    readonly evidence: { history(hub: string, app: string, hours: number): UsageHistory }
  }
  readonly clean: (payload: string) => string
}

/** Runs a command and waits for its answer, at most for the command's time limit. */
export async function runCommand(context: CommandContext, request: ApiRequest): Promise<Reply> {
  const { topics, bridge, clean, clock } = context
  const { rest, body, isJson, caller } = request
  const topic = commandTopic(topics.base, rest.split('/'))
  if (topic === undefined) return refuse(404, 'unknown_command', 'The path is not that of a command.')
  const { promise, resolve } = Promise.withResolvers<CommandReply>()
  const message: Message = {
    topic,
    payload: isJson ? withoutQuotes(topics, topic, body) : body,
    retain: false,
    dup: false,
    qos: 1,
    receivedAt: clock.elapsed(),
    // Commands over HTTP do not depend on a connection to the broker.
    connection: 0,
  }
  if (!bridge.command(message, { by: caller.by, reply: resolve })) return refuse(503, 'standby', STANDBY[bridge.role])
  const { outcome, payload } = await promise
  return { status: outcome.ok ? 200 : STATUS_OF[outcome.error.code], body: `${clean(payload)}\n` }
}

const STANDBY: Readonly<Record<Role, string>> = {
  active: 'hub2mqtt is stopping.',
  standby: 'Another hub2mqtt with the same base topic is active; this one stands by.',
  undecided: 'hub2mqtt is not connected to its broker yet and does not know whether another bridge is active.',
}

/** Converts the path of a request to a topic: `home/app/com.x/restart` → `hub2mqtt/home/app/com.x/cmd/restart`. */
function commandTopic(base: string, segments: readonly string[]): string | undefined {
  const levels = segments.map(levelOf)
  const at = levels[1] === 'app' ? 3 : 1
  if (levels.length <= at || levels.includes(undefined)) return undefined
  return [base, ...levels.slice(0, at), 'cmd', ...levels.slice(at)].join('/')
}

/** Converts a segment of a path to a topic level. Clients may percent-encode more characters than a level requires. */
function levelOf(segment: string): string | undefined {
  if (decodeLevel(segment) !== undefined) return segment
  try {
    return encodeLevel(decodeURIComponent(segment))
  } catch {
    return undefined
  }
}

/** Removes the quotes that JSON adds to a payload that is plain text. Other payloads are already JSON. */
function withoutQuotes(topics: Topics, topic: string, body: Buffer): Buffer {
  const { target, command: name, argument } = topics.parseCommand(topic) ?? {}
  const command = target && findCommand(target, name ?? '', argument !== undefined)
  const text = body.toString('utf8').trim()
  if (command === undefined || command.payload.emptyIsValue || !text.startsWith('"')) return body
  const unquoted = parseJson(text)
  return unquoted === undefined ? body : Buffer.from(String(unquoted))
}
