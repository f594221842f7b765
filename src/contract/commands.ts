/** One row for each command. The dispatcher, the checks, the list of commands and the documents derive from it. */
import * as v from 'valibot'
import { APP_KEYS, APP_STATES } from '../hub/app.ts'
import { callEndpoint, called } from './calls.ts'
import { type Capability, type Command, type HubCommand, row, type Target } from './command.ts'
import { HISTORY_HOURS } from './crash.ts'
import { afterSteps, CommandError } from './errors.ts'
import { changeChannel, install, installUpdate, updateAll } from './installs.ts'
import { LOG_LEVELS } from './log-levels.ts'
import { anyValue, duration, durationMs, either, inner, object, someOf, speech, word } from './payload.ts'
import { rolloutOrder } from './rollout.ts'
import { write } from './writes.ts'

/** Maximum length of a setting's name, in the payload or in the topic. */
export const MAX_NAME_LENGTH = 256
const settingName = v.pipe(v.string(), v.nonEmpty(), v.maxLength(MAX_NAME_LENGTH))
const channel = v.pipe(v.string(), v.nonEmpty(), v.maxLength(64))
const version = v.pipe(v.string(), v.nonEmpty(), v.maxLength(64))
const nothing = object({})
/** `message` is accepted for clients that always send it. */
const message = v.optional(v.pipe(v.string(), v.maxLength(1024)))
const plain = object({ message })

const nullable = <S extends v.GenericSchema>(schema: S) => v.optional(v.nullable(schema))
const APP_FILTER = inner({
  ...Object.fromEntries(APP_KEYS.map((key) => [key, nullable(v.union([v.string(), v.number(), v.boolean()]))])),
  state: nullable(v.picklist(APP_STATES)),
})

/** Creates a command whose effect is not checked. */
function plainWrite<const N extends string>(name: N, operation: 'restartApp' | 'garbageCollectApp', doc: string) {
  return row('app', name, {
    payload: plain,
    operation,
    doc,
    async run({ call, app }) {
      await call(operation, { id: app })
    },
  })
}

/** Creates the rows of a command whose only input is the name of a setting, in the topic or in the payload. */
function bySettingName<const N extends string>(
  name: N,
  rest: Pick<HubCommand, 'operation' | 'capabilities' | 'doc'>,
  run: (target: Target, setting: string) => Promise<unknown>,
) {
  return [
    row('app', name, { ...rest, argument: 'setting', payload: plain, run: (target) => run(target, target.argument) }),
    row('app', name, {
      ...rest,
      payload: object({ name: settingName }),
      run: (target, input) => run(target, input.name),
    }),
  ] as const
}

function ifGiven(value: unknown, ...capabilities: Capability[]): Capability[] {
  return value === undefined ? [] : capabilities
}

/** Returns the name of a rollout, which is the command's transaction. @throws CommandError if there is none */
function rolloutName(transaction: string | number | null): string {
  if (transaction !== null && transaction !== '') return String(transaction)
  throw new CommandError('invalid_payload', 'transaction: expected the name of the rollout.')
}

/** Words for on and off, alternating. */
const SWITCH_WORDS = ['ON', 'OFF', 'on', 'off', 'true', 'false', '1', '0']
const switched = word(SWITCH_WORDS.map((text, i) => [text, i % 2 === 0] as const))

const ROWS = [
  row('app', 'enable', {
    payload: plain,
    operation: 'enableApp',
    capabilities: ['enable'],
    doc: 'Enables the app; the hub starts it.',
    run: (target) => write(target, 'enableApp', { id: target.app }),
  }),
  row('app', 'disable', {
    payload: plain,
    operation: 'disableApp',
    capabilities: ['disable'],
    doc: 'Disables the app; the hub stops it.',
    run: (target) => write(target, 'disableApp', { id: target.app }),
  }),
  row('app', 'enabled', {
    payload: switched,
    operation: 'enableApp',
    capabilities: ['enable', 'disable'],
    doc: 'Enables or disables the app, for switches.',
    run: (target, enabled) => write(target, enabled ? 'enableApp' : 'disableApp', { id: target.app }),
  }),
  plainWrite('restart', 'restartApp', 'Restarts the app.'),
  plainWrite('garbage-collect', 'garbageCollectApp', 'Makes the app free memory (older hubs).'),
  row('app', 'get', {
    payload: object({ message, raw: v.optional(v.boolean()) }),
    operation: 'getApp',
    capabilities: ['read-app'],
    doc: "Returns the app as it is published; with `raw`, also the hub's record as `raw`.",
    async run({ hub, app, again, call }, { raw }) {
      const found = await again(() => hub.apps.getApp(app))
      return raw ? { ...found, raw: await call('getAppRecord', { id: app }) } : found
    },
  }),
  row('app', 'get-std', {
    payload: plain,
    operation: 'getAppStd',
    doc: "Sends the app's output as a diagnostics report to its developer, and returns the hub's response.",
    run: ({ call, app }, { message }) => call('getAppStd', { id: app, message }),
  }),
  row('app', 'get-settings', {
    payload: plain,
    operation: 'getAppSettings',
    capabilities: ['read-settings'],
    doc: 'Returns all settings of the app.',
    run: ({ call, app }) => call('getAppSettings', { id: app }),
  }),
  row('app', 'get-locales', {
    payload: plain,
    operation: 'getAppLocales',
    doc: "Returns the app's translations.",
    run: ({ call, app }) => call('getAppLocales', { id: app }),
  }),
  row('app', 'update', {
    payload: someOf({ autoupdate: v.optional(v.boolean()), channel: v.optional(channel) }),
    operation: 'updateApp',
    capabilities: ['autoupdate', 'channel'],
    capabilitiesOf: (input) => [
      ...ifGiven(input?.autoupdate, 'autoupdate'),
      ...ifGiven(input?.channel, 'channel', 'update-app'),
    ],
    doc: 'Changes automatic updates, then the channel (by installing from it); needs at least one of the keys.',
    async run(target, { autoupdate, channel }) {
      if (autoupdate !== undefined) await write(target, 'updateApp', { id: target.app, update: { autoupdate } })
      if (channel === undefined) return
      try {
        await changeChannel(target, channel)
      } catch (error) {
        throw afterSteps(error, autoupdate === undefined ? [] : ['autoupdate'])
      }
    },
  }),
  row('app', 'autoupdate', {
    payload: switched,
    operation: 'updateApp',
    capabilities: ['autoupdate'],
    doc: 'Turns automatic updates on or off.',
    run: (target, autoupdate) => write(target, 'updateApp', { id: target.app, update: { autoupdate } }),
  }),
  row('app', 'install', {
    payload: object({ channel: v.optional(channel), version: v.optional(version) }),
    operation: 'installFromAppStore',
    capabilities: ['update-app'],
    capabilitiesOf: (input) => ['update-app', ...ifGiven(input?.channel, 'channel')],
    doc: "Updates the app to the store's version or, on newer hubs, to a given version.",
    run: installUpdate,
  }),
  row('app', 'uninstall', {
    payload: object({ confirm: v.string(), purge_settings: v.optional(v.boolean()) }),
    operation: 'uninstallApp',
    allowed: false,
    doc: 'Removes the app; `confirm` must be its id.',
    async run(target, { confirm, purge_settings }) {
      if (confirm !== target.app) throw new CommandError('invalid_payload', 'confirm: expected the id of the app.')
      const done = await write(target, 'uninstallApp', { id: target.app, purgeSettings: purge_settings })
      target.hub.apps.expectRemoved(target.app)
      return done
    },
  }),
  ...bySettingName(
    'get-setting',
    { operation: 'getAppSetting', capabilities: ['read-settings'], doc: 'Returns one setting.' },
    ({ call, app }, name) => call('getAppSetting', { id: app, name }),
  ),
  row('app', 'set-setting', {
    argument: 'setting',
    payload: anyValue,
    operation: 'setAppSetting',
    doc: 'Sets one setting to the payload.',
    run: (target, value) => write(target, 'setAppSetting', { id: target.app, name: target.argument, value }),
  }),
  row('app', 'set-setting', {
    payload: object({ name: settingName, value: v.any() }),
    operation: 'setAppSetting',
    doc: 'Sets one setting.',
    run: (target, { name, value }) => write(target, 'setAppSetting', { id: target.app, name, value }),
  }),
  ...bySettingName('unset-setting', { operation: 'unsetAppSetting', doc: 'Removes one setting.' }, (target, name) =>
    write(target, 'unsetAppSetting', { id: target.app, name }),
  ),
  row('app', 'guard', {
    payload: either(
      switched,
      someOf({
        enabled: v.optional(v.boolean()),
        snooze: v.optional(duration),
        forget: v.optional(v.literal(true)),
      }),
    ),
    operation: 'restartApp',
    needs: 'guard',
    // `forget` also works while the guardian is off, because evidence of crashes is kept even then.
    worksWithout: (input) => typeof input === 'object' && input.forget === true && Object.keys(input).length === 1,
    doc: 'Turns the guardian on or off for the app, snoozes it, or clears its history and counts.',
    run({ guard }, input) {
      const { enabled, snooze, forget } = typeof input === 'boolean' ? { enabled: input } : input
      guard({ enabled, forget, snooze: snooze === undefined ? undefined : durationMs('snooze', snooze) })
      return Promise.resolve(null)
    },
  }),
  row('app', 'get-crash', {
    payload: nothing,
    operation: 'getApp',
    doc: "Returns the details of the latest crash as `markdown`, for the app's developer; `null` if there is none.",
    run: ({ report }) => Promise.resolve({ markdown: report() }),
  }),
  row('app', 'get-history', {
    payload: object({ hours: v.optional(HISTORY_HOURS, 24) }),
    operation: 'getApp',
    doc: 'Returns the CPU and memory usage of the last hours; the newest value can still change.',
    run: ({ history }, { hours }) => history(hours),
  }),
  row('hub', 'get-apps', {
    payload: object({ filter: v.optional(APP_FILTER) }),
    operation: 'getApps',
    capabilities: ['list-apps'],
    capabilitiesOf: (): Capability[] => ['list-apps', 'read-app'],
    doc: 'Returns the apps by id. With a filter, reads the hub again and returns the apps that match every given key.',
    run: ({ hub, again }, { filter }) => again(() => hub.apps.getApps(filter)),
  }),
  row('hub', 'install', {
    payload: object({
      id: v.pipe(v.string(), v.nonEmpty(), v.maxLength(256)),
      channel: v.optional(channel),
      version: v.optional(version),
    }),
    operation: 'installFromAppStore',
    allowed: false,
    capabilities: ['add-app'],
    capabilitiesOf: (input) => ['add-app', 'update-app', ...ifGiven(input?.channel, 'channel')],
    about: ({ id }) => id,
    doc: 'Installs an app from the store.',
    run: (target, { id, ...wanted }) => install(target, id, wanted),
  }),
  row('hub', 'update-all', {
    payload: nothing,
    operation: 'installFromAppStore',
    // There are no `capabilities`, because denying this command must not deny updates of single apps.
    capabilitiesOf: (): Capability[] => ['update-app'],
    fansOut: true,
    doc: 'Updates all apps that have an update, one after the other, and returns their ids.',
    run: updateAll,
  }),
  row('hub', 'speak', {
    payload: speech,
    operation: 'speak',
    doc: 'Speaks a text (older hubs).',
    async run({ call }, { text }) {
      await call('speak', { text })
    },
  }),
  row('hub', 'call', {
    payload: called,
    operation: null,
    allowed: false,
    about: ({ app }) => app,
    reaches: (endpoint) => endpoint,
    doc: 'Sends any request to the hub or an app, and returns the response; counts as a write unless the method is GET.',
    run: callEndpoint,
  }),
  row('hub', 'refresh', {
    payload: nothing,
    operation: 'getApps',
    doc: 'Reads everything from the hub again.',
    async run({ hub, again, repair }) {
      try {
        await again(() => hub.refresh())
      } finally {
        repair()
      }
    },
  }),
  row('bridge', 'log-level', {
    payload: either(
      word(LOG_LEVELS.map((level) => [level, { level }] as const)),
      object({ level: v.picklist(LOG_LEVELS), for: duration }),
    ),
    audited: true,
    doc: 'Changes the log level until the next start, or for a time such as `10m`.',
    act(bridge, input) {
      bridge.setLogLevel(input.level, 'for' in input ? durationMs('for', input.for) : undefined)
    },
  }),
  row('bridge', 'ping', {
    payload: nothing,
    doc: 'Only sends an answer.',
    act: () => {},
  }),
  row('bridge', 'rollout', {
    payload: rolloutOrder,
    needsTransaction: true,
    write: true,
    allowed: false,
    audited: true,
    sends: ({ command }) => command,
    doc: 'Restarts or updates apps on many hubs, in waves; `transaction` names the rollout.',
    act: (bridge, order, transaction) => bridge.rollouts.rollOut(rolloutName(transaction), order),
  }),
  row('bridge', 'rollout-cancel', {
    payload: nothing,
    needsTransaction: true,
    audited: true,
    repeatable: true,
    doc: 'Stops the rollout that `transaction` names, when its running steps have ended.',
    act: (bridge, _, transaction) => bridge.rollouts.cancelRollout(rolloutName(transaction)),
  }),
]

export const COMMANDS: readonly Command[] = ROWS

export type CommandName<D extends Command['target']> = Extract<(typeof ROWS)[number], { readonly target: D }>['name']

/** Returns the row as it applies to an input; most rows do not depend on the input. */
export function effectiveCommand(command: HubCommand, input: unknown): HubCommand {
  const endpoint = input === undefined ? undefined : command.reaches?.(input)
  if (endpoint === undefined) return command
  return { ...command, operation: endpoint.operation, write: endpoint.method !== 'GET' }
}

/** Returns whether a command is logged. Unknown commands are logged, because they may change something. */
export function isAudited(command: Command | undefined): boolean {
  if (command === undefined) return true
  return command.target === 'bridge' ? command.audited === true : command.write
}

export function findCommand(target: Command['target'], name: string, hasArgument: boolean): Command | undefined {
  return COMMANDS.find(
    (row) => row.name === name && row.target === target && (row.argument !== undefined) === hasArgument,
  )
}
