/** The schemas of the HTTP API. The page imports this file, so it must also run in browsers. */
import * as v from 'valibot'
import { FLEET, LOG_LEVEL } from '../../../contract/schemas.ts'

const text = v.string()
const time = v.pipe(text, v.isoTimestamp())
const about = <S extends v.GenericSchema>(schema: S, doc: string) => v.pipe(schema, v.description(doc))

/** Path of the live channel, relative to the page's address, because a proxy may serve the page under a prefix. */
export const LIVE_PATH = 'api/live'

/** The access of a caller. `local`: only the data that every program on this machine may read. */
export const ACCESS = v.picklist(['full', 'read', 'local'])
export type Access = v.InferOutput<typeof ACCESS>

export const SESSION = v.strictObject({
  access: about(
    v.nullable(ACCESS),
    '`local`: not logged in, but on the machine of hub2mqtt, where everything except the values of settings may be read; `null`: not logged in.',
  ),
  login: about(
    v.picklist(['none', 'password', 'token']),
    'What a login requires; `token`: the address that hub2mqtt printed when it started; `none`: no login is possible.',
  ),
  version: text,
  base_topic: text,
  member: about(
    v.nullable(text),
    'The bridge’s name in a fleet, which follows `bridge` in its own topics; `null`: it is not in a fleet.',
  ),
  setup: about(v.boolean(), 'Whether no hub is configured yet, so that the setup page is shown.'),
})
export type Session = v.InferOutput<typeof SESSION>

export const STATE = v.record(text, text)

/** A message of the MQTT interface: the full topic, and the payload as published. */
const message = v.strictTuple([text, text])
export type LiveMessage = v.InferOutput<typeof message>

/**
 * A message that is not retained. The answer to a command has the result topic, and `data` in its payload is always
 * `null`, because only the requester may see the data.
 */
const event = v.strictObject({ at: time, topic: text, payload: text })
export type FeedEvent = v.InferOutput<typeof event>

/** A sample of an app's usage: the time in epoch milliseconds, CPU in percent of one core, memory in bytes. */
const sample = v.strictTuple([v.number(), v.nullable(v.number()), v.nullable(v.number())])
export type Sample = v.InferOutput<typeof sample>

/** The close code of the WebSocket when a login is required, for example after a logout or a password change. */
export const LOGIN_DUE = 4401

/** Why commands are unavailable, by hub and by the command's name in the configuration (`restart`, `hub/install`). */
const refusals = v.record(text, v.record(text, text))
export type Refusals = v.InferOutput<typeof refusals>

const fleet = v.strictObject({
  ...FLEET.entries,
  member: about(text, 'The member that sent this.'),
  acts: about(v.boolean(), 'Whether that member may send requests to its hubs now; `false`: it has no lease.'),
  speaker: about(v.nullable(text), 'The fleet leader.'),
  owners: about(v.record(text, text), 'Hub → the member that serves it.'),
})
export type FleetStatus = v.InferOutput<typeof fleet>

/** The part of the state that no MQTT message contains. */
const pageState = {
  refusals,
  log_level: about(LOG_LEVEL, 'The current log level. On MQTT, it is published only with discovery.'),
}

/** The frames that the server sends on the WebSocket, one JSON text per message. */
export const LIVE_FRAME = v.variant('type', [
  v.strictObject({
    type: v.literal('snapshot'),
    at: time,
    state: about(
      v.array(message),
      'Every retained message of the bridge except Home Assistant’s discovery; in a fleet, with the states of other members and their hubs.',
    ),
    recent: about(v.array(event), 'The latest events, oldest first.'),
    since: about(v.record(text, time), 'State topic of the bridge or a hub → when the state last changed.'),
    usage: about(v.record(text, v.array(sample)), 'Topic of an app → its usage of the last 15 minutes, oldest first.'),
    ...pageState,
    fleet: v.exactOptional(fleet),
  }),
  v.strictObject({
    type: v.literal('changes'),
    at: time,
    state: about(v.array(v.strictTuple([text, v.nullable(text)])), 'What changed; `null`: cleared.'),
    happenings: v.array(event),
    refusals: v.exactOptional(pageState.refusals),
    log_level: v.exactOptional(pageState.log_level),
    fleet: v.exactOptional(fleet),
  }),
  v.strictObject({ type: v.literal('alive'), at: time }),
])
export type LiveFrame = v.InferOutput<typeof LIVE_FRAME>

/** Maximum time between two frames from the server, in milliseconds. After twice this time, a page shows stale data. */
export const LIVE_INTERVAL_MS = 5_000

export const API_ERROR = v.strictObject({
  error: v.strictObject({ code: text, message: about(text, 'A description for users.') }),
})
export type ApiError = v.InferOutput<typeof API_ERROR>

export const LOG_LINES = v.strictObject({
  lines: about(v.array(text), 'Each line is a JSON object, oldest first. Long lines are shortened.'),
  missed: about(v.number(), 'How many lines between the previous answer and this one are no longer stored.'),
  next: about(text, 'The value of `after` for the lines that follow.'),
  level: LOG_LEVEL,
  fallback: about(
    v.nullable(v.strictObject({ level: LOG_LEVEL, remaining_ms: v.number() })),
    'The level to which the log returns, if this one was set for a limited time.',
  ),
})
export type LogLines = v.InferOutput<typeof LOG_LINES>

export const DOCTOR_REPORT = v.strictObject({ text: about(text, 'The report as `hub2mqtt doctor` prints it.') })
export type DoctorReport = v.InferOutput<typeof DOCTOR_REPORT>

export const CONFIG_REPORT = v.strictObject({
  text: about(text, 'As YAML.'),
  path: about(v.nullable(text), 'The file from which it was read.'),
})
export type ConfigReport = v.InferOutput<typeof CONFIG_REPORT>

export const SETUP = v.strictObject({
  path: about(v.nullable(text), 'The file that would be written; `null`: hub2mqtt may not write it.'),
  broker: about(text, 'The broker of the current configuration, without its login.'),
  found: about(v.array(v.strictObject({ url: text, name: text })), 'Hubs found by mDNS that answered a ping.'),
})
export type Setup = v.InferOutput<typeof SETUP>

export const SETUP_HUB = v.strictObject({ name: text, url: text, api_key: text })
export type SetupHub = v.InferOutput<typeof SETUP_HUB>
export const SETUP_BROKER = v.strictObject({
  url: about(v.nullable(text), '`null`: the embedded broker.'),
  username: v.nullable(text),
  password: v.nullable(text),
})
export type SetupBroker = v.InferOutput<typeof SETUP_BROKER>

export const SETUP_TEST = v.strictObject({
  ok: v.boolean(),
  message: about(text, 'What was found, or the exact error and its fix.'),
})
export type SetupTest = v.InferOutput<typeof SETUP_TEST>

export const SETUP_APPLY = v.strictObject({ hub: SETUP_HUB, broker: SETUP_BROKER })
export type SetupApply = v.InferOutput<typeof SETUP_APPLY>

export const SETUP_DONE = v.strictObject({
  written: about(
    v.nullable(text),
    'The file that was written; `null`: the user must add the lines and restart hub2mqtt.',
  ),
  lines: about(
    text,
    'The configuration as lines of a file, or as environment variables if there is no file. Secrets are masked if the file was written, and replaced with placeholders otherwise.',
  ),
})
export type SetupDone = v.InferOutput<typeof SETUP_DONE>
