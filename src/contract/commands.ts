/**
 * Every command, one row each: where it comes in, what it takes, which operation of the hub it needs, and what it
 * does. Dispatch, checks, the hub's list of commands and the documentation follow from this table.
 */
import * as v from 'valibot'
import type { Hub } from '../hub/hub.ts'
import type { OperationName } from '../hub/operations.ts'
import { appIs, appIsGone, settingIs, settingIsGone } from '../hub/verify.ts'
import { LOG_LEVELS, type LogLevel } from '../log/levels.ts'
import { APP_KEYS, APP_STATES } from '../model/app.ts'
import { CommandError } from './errors.ts'
import { anyValue, inner, object, type PayloadKind, someOf, spoken, word } from './payload.ts'

/** What a command may do to the bridge itself. */
export interface BridgeControl {
  setLogLevel(level: LogLevel): void
}

/** What a command is carried out on. */
export interface Target {
  readonly hub: Hub
  /** The app's id; empty for a command that is for the whole hub. */
  readonly app: string
  /** The decoded argument of the topic; empty if the row has none. */
  readonly argument: string
}

interface Common<T> {
  readonly name: string
  readonly payload: PayloadKind<T>
  /** Whether the topic ends in one more level, the name of a setting. */
  readonly argument?: 'setting'
  /** Commands that this one is another way to say: it is refused where one of them is. */
  readonly means?: readonly string[]
  /** For people: one sentence. */
  readonly doc: string
}

export interface HubCommand<T = unknown> extends Common<T> {
  readonly target: 'app' | 'hub'
  readonly operation: OperationName
  /** Changes something on the hub: never repeated, audited, refused where only reading is allowed. */
  readonly write: boolean
  /** Whether it may be used unless configuration says otherwise (default true). */
  readonly allowed?: false
  readonly run: (target: Target, input: T) => Promise<unknown>
  /**
   * For a write that was sent and not answered: reads the hub and tells whether what was asked for is so. A command
   * without it cannot be decided by reading.
   */
  readonly verify?: (target: Target, input: T) => Promise<boolean>
}

interface BridgeCommand<T> extends Common<T> {
  readonly target: 'bridge'
  readonly act: (bridge: BridgeControl, input: T) => void
}

export type Command<T = unknown> = HubCommand<T> | BridgeCommand<T>

/** A row with its literals kept for the types that follow from the table. The type of its input stays inside of it. */
type Row<K extends Command['target'], N extends string, M extends string> = Omit<
  K extends 'bridge' ? BridgeCommand<unknown> : HubCommand,
  'means'
> & { readonly target: K; readonly name: N; readonly means?: readonly M[] }

type Rest<C, M> = Omit<C, 'target' | 'name' | 'means'> & { readonly means?: readonly M[] }

function row<const K extends 'app' | 'hub', const N extends string, T, const M extends string = never>(
  target: K,
  name: N,
  rest: Rest<HubCommand<T>, M>,
): Row<K, N, NoInfer<M>>
function row<const N extends string, T>(
  target: 'bridge',
  name: N,
  rest: Rest<BridgeCommand<T>, never>,
): Row<'bridge', N, never>
function row(target: string, name: string, rest: object): unknown {
  return { target, name, ...rest }
}

interface AnyRow {
  readonly name: string
  readonly means?: readonly string[]
}

type MeantBy<R> = R extends { readonly means?: infer A }
  ? NonNullable<A> extends readonly (infer M extends string)[]
    ? M
    : never
  : never

/** Names in the column `means` that no row has. */
type Unknown<R extends readonly AnyRow[]> = Exclude<MeantBy<R[number]>, R[number]['name']>

export function table<const R extends readonly AnyRow[]>(
  rows: R & ([Unknown<R>] extends [never] ? unknown : { readonly noSuchCommand: Unknown<R> }),
): R {
  return rows
}

const settingName = v.pipe(v.string(), v.nonEmpty(), v.maxLength(256))
const channel = v.pipe(v.string(), v.nonEmpty(), v.maxLength(64))
const nothing = object({})
/** The plain commands share a payload; the message is for those that pass one on. */
const plain = object({ message: v.optional(v.pipe(v.string(), v.maxLength(1024))) })

const nullable = <S extends v.GenericSchema>(schema: S) => v.optional(v.nullable(schema))
const APP_FILTER = inner({
  ...Object.fromEntries(APP_KEYS.map((key) => [key, nullable(v.union([v.string(), v.number(), v.boolean()]))])),
  state: nullable(v.picklist(APP_STATES)),
})

type PlainWrite = 'enableApp' | 'disableApp' | 'restartApp' | 'garbageCollectApp'

/** The commands that are an operation on an app and nothing more. */
function plainWrite<const N extends string>(
  name: N,
  operation: PlainWrite,
  doc: string,
  verify?: HubCommand['verify'],
) {
  const run = ({ hub, app }: Target) => hub.call(operation, { id: app })
  return row('app', name, { payload: plain, operation, write: true, doc, run, ...(verify && { verify }) })
}

const ROWS = table([
  plainWrite('enable', 'enableApp', 'Enables the app; the hub starts it.', ({ hub, app }) =>
    appIs(hub, app, { enabled: true }),
  ),
  plainWrite('disable', 'disableApp', 'Disables the app; the hub stops it.', ({ hub, app }) =>
    appIs(hub, app, { enabled: false }),
  ),
  row('app', 'enabled', {
    payload: word({ ON: true, OFF: false, true: true, false: false }),
    operation: 'enableApp',
    write: true,
    means: ['enable', 'disable'],
    doc: 'Enables or disables the app: both in one, as a switch needs it.',
    run: ({ hub, app }, enabled) => hub.call(enabled ? 'enableApp' : 'disableApp', { id: app }),
    verify: ({ hub, app }, enabled) => appIs(hub, app, { enabled }),
  }),
  plainWrite('restart', 'restartApp', 'Restarts the app.'),
  plainWrite('garbage-collect', 'garbageCollectApp', 'Makes the app free memory (older hubs).'),
  row('app', 'get', {
    payload: plain,
    operation: 'getApp',
    write: false,
    doc: 'Answers with the app as it is published.',
    run: ({ hub, app }) => hub.apps.getApp(app),
  }),
  row('app', 'get-std', {
    payload: plain,
    operation: 'getAppStd',
    write: false,
    doc: 'Answers with the output of the last crash.',
    run: ({ hub, app }, { message }) => hub.call('getAppStd', { id: app, message }),
  }),
  row('app', 'get-settings', {
    payload: plain,
    operation: 'getAppSettings',
    write: false,
    doc: 'Answers with all settings of the app.',
    run: ({ hub, app }) => hub.call('getAppSettings', { id: app }),
  }),
  row('app', 'get-locales', {
    payload: plain,
    operation: 'getAppLocales',
    write: false,
    doc: "Answers with the app's translations.",
    run: ({ hub, app }) => hub.call('getAppLocales', { id: app }),
  }),
  row('app', 'update', {
    payload: someOf({ autoupdate: v.optional(v.boolean()), channel: v.optional(channel) }),
    operation: 'updateApp',
    write: true,
    doc: 'Changes automatic updates, the channel, or both; at least one.',
    run: ({ hub, app }, update) => hub.call('updateApp', { id: app, update }),
    verify: ({ hub, app }, update) => appIs(hub, app, update),
  }),
  row('app', 'autoupdate', {
    payload: word({ ON: true, OFF: false, true: true, false: false }),
    operation: 'updateApp',
    write: true,
    doc: 'Turns automatic updates on or off.',
    run: ({ hub, app }, autoupdate) => hub.call('updateApp', { id: app, update: { autoupdate } }),
    verify: ({ hub, app }, autoupdate) => appIs(hub, app, { autoupdate }),
  }),
  row('app', 'install', {
    payload: object({ channel: v.optional(channel) }),
    operation: 'installFromAppStore',
    write: true,
    doc: 'Installs the version that the store has: the update of the app.',
    run: ({ hub, app }, input) => hub.call('installFromAppStore', { appId: app, ...input }),
  }),
  row('app', 'uninstall', {
    payload: object({ confirm: v.string(), purge_settings: v.optional(v.boolean()) }),
    operation: 'uninstallApp',
    write: true,
    allowed: false,
    doc: 'Removes the app; `confirm` must repeat its id.',
    async run({ hub, app }, { confirm, purge_settings: purgeSettings }) {
      if (confirm !== app) throw new CommandError('invalid_payload', 'confirm: expected the id of the app.')
      return await hub.call('uninstallApp', { id: app, purgeSettings })
    },
    verify: ({ hub, app }) => appIsGone(hub, app),
  }),
  row('app', 'get-setting', {
    argument: 'setting',
    payload: plain,
    operation: 'getAppSetting',
    write: false,
    doc: 'Answers with one setting.',
    run: ({ hub, app, argument }) => hub.call('getAppSetting', { id: app, name: argument }),
  }),
  row('app', 'get-setting', {
    payload: object({ name: settingName }),
    operation: 'getAppSetting',
    write: false,
    doc: 'Answers with one setting.',
    run: ({ hub, app }, { name }) => hub.call('getAppSetting', { id: app, name }),
  }),
  row('app', 'set-setting', {
    argument: 'setting',
    payload: anyValue,
    operation: 'setAppSetting',
    write: true,
    doc: 'Sets one setting to the payload: a JSON value, or else text.',
    run: ({ hub, app, argument }, value) => hub.call('setAppSetting', { id: app, name: argument, value }),
    verify: ({ hub, app, argument }, value) => settingIs(hub, app, argument, value),
  }),
  row('app', 'set-setting', {
    payload: object({ name: settingName, value: v.any() }),
    operation: 'setAppSetting',
    write: true,
    doc: 'Sets one setting.',
    run: ({ hub, app }, { name, value }) => hub.call('setAppSetting', { id: app, name, value }),
    verify: ({ hub, app }, { name, value }) => settingIs(hub, app, name, value),
  }),
  row('app', 'unset-setting', {
    argument: 'setting',
    payload: plain,
    operation: 'unsetAppSetting',
    write: true,
    doc: 'Removes one setting.',
    run: ({ hub, app, argument }) => hub.call('unsetAppSetting', { id: app, name: argument }),
    verify: ({ hub, app, argument }) => settingIsGone(hub, app, argument),
  }),
  row('app', 'unset-setting', {
    payload: object({ name: settingName }),
    operation: 'unsetAppSetting',
    write: true,
    doc: 'Removes one setting.',
    run: ({ hub, app }, { name }) => hub.call('unsetAppSetting', { id: app, name }),
    verify: ({ hub, app }, { name }) => settingIsGone(hub, app, name),
  }),
  row('hub', 'get-apps', {
    payload: object({ filter: v.optional(APP_FILTER) }),
    operation: 'getApps',
    write: false,
    doc: 'Answers with the apps by id; a filter reads the hub afresh and keeps those that equal it in every key given.',
    async run({ hub }, { filter }) {
      const apps = await hub.apps.getApps(filter)
      return Object.fromEntries(apps.map((app) => [app.id, app]))
    },
  }),
  row('hub', 'install', {
    payload: object({ id: v.pipe(v.string(), v.nonEmpty(), v.maxLength(256)), channel: v.optional(channel) }),
    operation: 'installFromAppStore',
    write: true,
    allowed: false,
    doc: 'Installs an app from the store.',
    run: ({ hub }, { id, channel }) => hub.call('installFromAppStore', { appId: id, channel }),
    verify: ({ hub }, { id }) => appIs(hub, id, {}),
  }),
  row('hub', 'speak', {
    payload: spoken,
    operation: 'speak',
    write: true,
    doc: 'Says a text aloud (older hubs).',
    run: ({ hub }, { text }) => hub.call('speak', { text }),
  }),
  row('hub', 'refresh', {
    payload: nothing,
    operation: 'getApps',
    write: false,
    doc: 'Reads everything from the hub again.',
    async run({ hub }) {
      await hub.refresh()
      return null
    },
  }),
  row('bridge', 'log-level', {
    payload: word(Object.fromEntries(LOG_LEVELS.map((level) => [level, level]))),
    doc: 'Changes how much is logged, until the next start.',
    act: (bridge, level) => bridge.setLogLevel(level),
  }),
  row('bridge', 'ping', {
    payload: nothing,
    doc: 'Answers, and does nothing else.',
    act: () => {},
  }),
])

export const COMMANDS: readonly Command[] = ROWS

/** Names of the commands for one kind of target. */
export type CommandName<D extends Command['target']> = Extract<(typeof ROWS)[number], { readonly target: D }>['name']

const INDEX = new Map(
  COMMANDS.map((command) => [key(command.target, command.name, command.argument !== undefined), command]),
)

/** The row for a command topic. */
export function findCommand(target: Command['target'], name: string, hasArgument: boolean): Command | undefined {
  return INDEX.get(key(target, name, hasArgument))
}

function key(target: string, name: string, hasArgument: boolean): string {
  return `${target} ${name} ${hasArgument}`
}
