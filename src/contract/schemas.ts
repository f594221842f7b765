/** The schemas of the payloads that the bridge publishes. Types, documentation and tests derive from them. */
import * as v from 'valibot'
import { SEVERITIES } from '../base/versions.ts'
import { APP_STATES, type App } from '../hub/app.ts'
import { COMMANDS } from './commands.ts'
import { about, amount, count, frozen } from './crash.ts'
import { ERROR_CODES, isErrorCode } from './errors.ts'
import { APP_EVENT_TYPES, GUARD_EVENT_TYPES, HUB_EVENT_TYPES } from './events.ts'
import { GUARD_STATES, HISTORY_KINDS, MAX_APPS_NAMED, MAX_GUARD_MESSAGE, MAX_HISTORY, REASONS } from './guard.ts'
import { LOG_LEVELS } from './log-levels.ts'
import { ROLLOUT_COMMANDS, ROLLOUT_REASONS, ROLLOUT_STATES } from './rollout.ts'

/** Version of the MQTT contract. A change that could break automations requires a new version. */
export const CONTRACT_VERSION = 1 as const

const text = v.string()
const flag = v.boolean()
/** Rejects times that `Date` cannot parse, because `isoTimestamp` accepts some of them. */
const isRead = v.check((time: string) => !Number.isNaN(Date.parse(time)))
const time = v.pipe(text, v.isoTimestamp(), isRead)

const integer = v.pipe(amount, v.integer())
const list = <S extends v.GenericSchema>(schema: S) => v.pipe(v.array(schema), v.readonly())

/** Must match the type `App`. An extra or missing key is a type error, here or in `publications.ts`. */
export const APP = v.strictObject({
  id: text,
  name: v.nullable(text),
  version: v.nullable(text),
  enabled: v.nullable(flag),
  state: v.nullable(v.picklist(APP_STATES)),
  crashed: v.nullable(flag),
  crash_message: v.nullable(v.pipe(text, v.maxLength(1024))),
  crash_count: v.nullable(amount),
  autoupdate: v.nullable(flag),
  channel: v.nullable(text),
  origin: v.nullable(text),
  update_available: v.nullable(flag),
  latest_version: v.nullable(text),
  update_severity: about(
    v.nullable(v.picklist(SEVERITIES)),
    'The step from the version to the newest one; `null` if neither hub nor store names the newest.',
  ),
  cpu_percent: about(v.nullable(amount), 'Percent of one core; `null` unless running.'),
  memory_bytes: about(v.nullable(integer), '`null` unless running.'),
  has_settings: v.nullable(flag),
  sdk: v.nullable(amount),
  author: v.nullable(text),
  compatibility: v.nullable(text),
}) satisfies v.GenericSchema<unknown, App>

export const APP_EVENT = v.strictObject({
  event_type: v.picklist(APP_EVENT_TYPES),
  app: text,
  changed: about(list(text), 'Keys of the app that changed, except usage.'),
  at: time,
  message: v.exactOptional(about(v.nullable(text), "For a crash: the app's message.")),
  count: v.exactOptional(about(v.nullable(amount), 'For a crash: the number of crashes so far.')),
  from: v.exactOptional(about(text, 'For a version change: the previous version.')),
  to: v.exactOptional(about(text, 'For a version change: the new version.')),
})

const errorCode = v.picklist(Object.keys(ERROR_CODES).filter(isErrorCode))

export const COMMAND_FAILED = v.strictObject({
  event_type: v.literal('command_failed'),
  app: about(v.nullable(text), '`null` for a command to the whole hub.'),
  command: text,
  code: about(errorCode, "The error code of the command's answer."),
  transaction: about(v.nullable(v.union([text, amount])), "The command's transaction, or `null`."),
  at: time,
})

const reason = v.picklist(REASONS)
const guardMessage = about(v.nullable(v.pipe(text, v.maxLength(MAX_GUARD_MESSAGE))), 'A text for people.')

export const GUARD_EVENT = v.strictObject({
  event_type: v.picklist(GUARD_EVENT_TYPES),
  app: text,
  changed: about(list(text), 'Always empty.'),
  at: time,
  reason: about(reason, 'The reason.'),
  message: v.exactOptional(guardMessage),
  from: v.exactOptional(about(text, 'For an update: the version before it.')),
  to: v.exactOptional(about(text, 'For an update: the new version, or the requested one.')),
})

export const HUB_EVENT = v.strictObject({
  event_type: v.picklist(HUB_EVENT_TYPES),
  app: about(v.null(), 'Always `null`: the event is about the hub.'),
  apps: about(v.pipe(list(text), v.maxLength(MAX_APPS_NAMED)), 'The apps that have crashed.'),
  at: time,
})

/** Events on an app's topic. `EVENT_OF_HUB` contains all events on a hub's topic. */
export const EVENT = v.union([APP_EVENT, COMMAND_FAILED, GUARD_EVENT])
export const EVENT_OF_HUB = v.union([...EVENT.options, HUB_EVENT])

/** An app's version on a topic that the bridge reads back. Any client can publish there, so the length is limited. */
const versionText = v.nullable(v.pipe(text, v.maxLength(256)))

export const GUARD = v.strictObject({
  state: v.picklist(GUARD_STATES),
  restarts: about(count, 'Total number of restarts by the guardian.'),
  restarts_in_window: about(count, 'Restarts that count against `guard.max_restarts`.'),
  next_restart_at: v.nullable(time),
  retry_at: about(v.nullable(time), 'When the guardian tries the next restart after it gave up.'),
  snoozed_until: v.nullable(time),
  last_crash: v.nullable(frozen({ at: time, reason, message: guardMessage, version: versionText })),
  memory_trend_bytes_per_hour: about(v.nullable(amount), '`null` until there are enough readings.'),
  attention: about(list(reason), 'Why the app needs attention.'),
})

/** The guardian's state as stored on the broker, perhaps by an earlier version of the bridge. */
export const SAVED_GUARD = v.strictObject({ ...GUARD.entries, retry_at: v.optional(GUARD.entries.retry_at, null) })

export const HISTORY = v.pipe(
  list(
    frozen({
      at: time,
      what: v.picklist(HISTORY_KINDS),
      reason: v.nullable(reason),
      version: versionText,
      by: about(
        v.nullable(v.pipe(text, v.maxLength(64))),
        '`guard`, `command`, or `null` for the hub itself and its other clients.',
      ),
      message: guardMessage,
    }),
  ),
  v.maxLength(MAX_HISTORY),
)

export const GUARD_MEMORY = v.strictObject({
  enabled: about(v.nullable(flag), 'The value set by a command; `null` if only the configuration applies.'),
  offered: about(
    v.nullable(
      frozen({
        version: versionText,
        since: time,
        seen_seconds: about(v.optional(count, 0), 'How long the bridge has seen the offer, up to `updates.hold_days`.'),
      }),
    ),
    'The newest available version.',
  ),
  updated: about(
    v.nullable(frozen({ at: time, from: versionText, to: versionText, crashes: count })),
    'The latest change of version, as long as crashes are attributed to it.',
  ),
  retries: v.exactOptional(about(count, 'Number of retries since the guardian gave up.')),
  reset_after: v.exactOptional(
    about(time, 'Time of the newest event in the history that was there when the restart count was last reset.'),
  ),
  update_failed_at: v.exactOptional(
    about(time, 'When an update in a window failed, for the 20 hours until the next attempt.'),
  ),
  down: v.exactOptional(about(v.literal(true), 'The app crashed and has not run since, which the hub does not show.')),
  scheduled: v.exactOptional(about(v.literal(true), 'The restart that the app waits for is one by a schedule.')),
})

export const GONE_APPS = list(
  frozen({
    app: text,
    gone_hours: about(count, 'Hours since the removal, while the bridge was running.'),
    guard: v.nullable(SAVED_GUARD),
    history: about(HISTORY, 'The newest entries.'),
    memory: v.nullable(GUARD_MEMORY),
  }),
)

export const ANYTHING = v.any()

/** Plain text, not JSON. */
export const AVAILABILITY = v.picklist(['online', 'offline'])

const api = about(v.nullable(v.picklist(['manager', 'managers'])), "First part of the API's paths.")

export const BRIDGE_INFO = v.strictObject({
  contract: v.literal(CONTRACT_VERSION),
  version: text,
  started_at: time,
  hubs: v.record(text, v.strictObject({ url_host: text, api })),
  mqtt: v.strictObject({ protocol: v.nullable(v.picklist(['5', '3.1.1'])) }),
  extensions: about(v.array(text), 'Names of the extensions of this interface that this bridge supports.'),
})

export const HUB_INFO = v.strictObject({
  id: v.nullable(text),
  firmware: v.nullable(text),
  api,
  realtime: v.picklist(['connected', 'polling']),
  permissions: about(v.array(text), 'The permissions of the API key.'),
  commands: about(
    v.array(v.picklist([...new Set(COMMANDS.map(({ name }) => name))])),
    'The commands that the configuration, the API key and the hub permit.',
  ),
  apps: about(integer, 'The number of published apps.'),
  owner: v.exactOptional(about(text, 'In a fleet: the member that serves the hub.')),
  epoch: v.exactOptional(about(integer, 'In a fleet: the epoch of this assignment.')),
  reason: v.exactOptional(about(text, 'Why the hub is not fully usable: `unauthorized`, `unreachable`, …')),
})

export const FLEET = v.strictObject({
  mode: about(v.picklist(['static', 'leases']), 'How the hubs are divided among the members.'),
  epoch: about(integer, 'Grows whenever the members change.'),
  members: v.record(
    text,
    v.strictObject({
      since: about(v.nullable(time), '`null` if the hubs are divided by number: whether a member runs is unknown.'),
      hubs: about(integer, 'Number of hubs that the member serves.'),
    }),
  ),
  count: about(integer, 'Number of members.'),
})
export type FleetPayload = v.InferOutput<typeof FLEET>

export const HEALTH = v.strictObject({
  live: about(flag, 'Whether the process works without a restart.'),
  ready: about(flag, 'Whether the broker is connected, and at least one hub is online and has been read.'),
  problems: about(list(text), 'One line for each problem.'),
  version: text,
  started_at: time,
  mqtt: v.strictObject({
    state: v.picklist(['connecting', 'connected', 'waiting', 'stopped']),
    protocol: v.nullable(v.picklist(['5', '3.1.1'])),
    reason: v.nullable(text),
    probe: v.picklist(['ok', 'denied', 'unknown']),
  }),
  hubs: v.record(
    text,
    v.strictObject({
      online: flag,
      reason: v.nullable(text),
      realtime: v.picklist(['connected', 'polling']),
      read: about(flag, 'Whether the list of apps has been read since the start.'),
      task: v.picklist(['alive', 'stuck']),
    }),
  ),
})
export type HealthReport = v.InferOutput<typeof HEALTH>

export const LOG_LEVEL = v.picklist(LOG_LEVELS)

/** Data that the bridge stores on the broker for itself. */
export const DISCOVERY_MEMORY = v.strictObject({ prefixes: v.array(text) })

export const PROBE = text

const role = v.picklist(['active', 'undecided', 'standby'])
/** The role of a bridge, which is `undecided` until it is known whether another bridge is active on the base topic. */
export type Role = v.InferOutput<typeof role>

export const PRESENCE = v.strictObject({
  instance: about(text, 'Unique to each process.'),
  started_at: time,
  role: v.exactOptional(
    about(
      role,
      '`active`: the sender publishes and executes, or did so until this message. The bridge that started first is active. `undecided`: the sender does not know its role yet.',
    ),
  ),
  asks: v.exactOptional(about(v.literal(true), 'Requests an immediate answer from other bridges.')),
  hubs: v.exactOptional(about(v.array(text), 'Hubs of the active bridge; its successor may clear their topics.')),
  leaves: v.exactOptional(about(v.literal(true), 'The bridge is stopping.')),
})

/** Home Assistant defines this format; the tests check the bridge's messages against it. */
export const DISCOVERY = v.record(text, v.any())

export const HUB_SUMMARY = v.strictObject({
  apps: integer,
  apps_crashed: integer,
  updates_available: integer,
  cpu_percent: about(v.nullable(amount), 'Sum over all apps, in percent of one core, from the latest read.'),
  memory_bytes: about(v.nullable(amount), 'Sum over all apps, from the latest read.'),
  needs_attention: v.exactOptional(about(list(text), 'Apps that need attention, if the guardian is on.')),
})

export type HubSummary = v.InferOutput<typeof HUB_SUMMARY>

export const APP_LINKS = v.strictObject({
  devices: v.nullable(integer),
  devices_unavailable: v.nullable(integer),
  flows: about(v.nullable(integer), 'Number of flows and advanced flows with cards of the app.'),
  flows_broken: v.nullable(integer),
})
export type AppLinks = v.InferOutput<typeof APP_LINKS>

/** The keys of Home Assistant's update entity, which does not accept `null`. */
export const APP_UPDATE = v.strictObject({
  title: v.exactOptional(text),
  installed_version: v.exactOptional(text),
  latest_version: v.exactOptional(text),
  release_summary: v.exactOptional(
    about(v.pipe(text, v.maxLength(255)), 'The changelog of the newest version, if `updates.store` is on.'),
  ),
  release_url: v.exactOptional(about(text, 'The page of the app in the store.')),
  in_progress: flag,
  update_percentage: v.nullable(integer),
})
export type AppUpdate = v.InferOutput<typeof APP_UPDATE>

export const ANSWER_HEAD = v.strictObject({
  command: text,
  hub: v.nullable(text),
  app: v.nullable(text),
  transaction: about(v.nullable(v.union([text, amount])), "The command's transaction, or `null`."),
  duration_ms: integer,
  replayed: v.exactOptional(about(v.literal(true), 'The command was answered before: this answer is from memory.')),
})

/** The answer to a command that the hub has confirmed. */
export const SUCCESS = v.strictObject({
  ok: v.literal(true),
  ...ANSWER_HEAD.entries,
  data: about(v.any(), 'The result; `null` if there is none.'),
})

const codes = Object.entries(ERROR_CODES)
  .map(([code, doc]) => `- \`${code}\`: ${doc}`)
  .join('\n')

/** The answer to a command that failed or whose outcome is unknown. */
export const FAILURE = v.strictObject({
  ok: v.literal(false),
  ...ANSWER_HEAD.entries,
  error: v.strictObject({
    code: about(errorCode, codes),
    message: about(text, 'A text for people.'),
    status: about(v.nullable(amount), "HTTP status of the hub's response, if there was one."),
  }),
  data: v.exactOptional(
    v.strictObject({ done: about(v.array(text), 'Steps of the command that succeeded before the one that failed.') }),
  ),
})

const rolloutStep = { hub: text, app: text }

export const ROLLOUT = v.strictObject({
  transaction: about(text, 'The transaction of the command that started the rollout.'),
  command: v.picklist(ROLLOUT_COMMANDS),
  app: text,
  hubs: text,
  canary: count,
  batch: count,
  pause: text,
  stop_after_failures: count,
  state: v.picklist(ROLLOUT_STATES),
  reason: about(
    v.nullable(v.picklist(ROLLOUT_REASONS)),
    'Why no more steps start; `null` while the rollout runs or if it is done.',
  ),
  started_at: time,
  updated_at: time,
  total: about(count, 'Number of steps: one for each app on each hub.'),
  done: about(count, 'Number of steps that succeeded: the app is running.'),
  failed: list(
    v.strictObject({
      ...rolloutStep,
      code: about(text, 'An error code, or `crashed` or `not_running`.'),
      message: about(text, 'A text for people.'),
    }),
  ),
  current: about(
    list(v.strictObject({ ...rolloutStep, phase: v.picklist(['sent', 'answered']) })),
    'Running steps: not answered yet, or monitored until the pause is over.',
  ),
  targets: about(list(v.strictObject({ app: text, hubs: list(text) })), 'All steps, in order: by hub, then by app.'),
})
