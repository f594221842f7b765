/** The actions on apps, in menus, on an app's page and for several apps: one row each, with its confirmation. */
import { type AppCommand, actOn, commandName, refusal } from './commands.ts'
import { formatClock } from './format.ts'
import { type AppEntry, readTopic } from './live/store.ts'
import type { GlyphName } from './parts/icons.tsx'
import { type Confirmation, confirm, type Listed, type MenuItem, type Question } from './parts/overlays.tsx'
import type { PageContext } from './session.ts'
import { defineStrings, terms } from './terms.ts'

const text = defineStrings('actions', {
  update: {
    title: 'Update {name}?',
    text: 'The hub installs the new version from the app store, and restarts the app.',
    versions: '{from} → {to}',
    severity: '{versions} ({severity})',
    severities: { major: 'major', minor: 'minor', patch: 'patch' },
    unnamed: 'a newer version',
  },
  disable: {
    title: 'Disable {name}?',
    text: 'The hub stops the app. Its devices and flows do not work until it is enabled again.',
  },
  uninstall: {
    title: 'Uninstall {name}?',
    text: 'The hub removes {id} with its devices. Flows that use it break. This cannot be undone.',
    option: 'Remove its settings too',
  },
  guardian: {
    watch: 'Watch with the guardian',
    watchAgain: 'Watch again',
    unwatch: 'Stop watching',
    snoozeHour: 'Snooze for 1 hour',
    snoozeHours: 'Snooze for 8 hours',
    snoozeTomorrow: 'Snooze until tomorrow, {time}',
    forget: 'Clear history and counts',
  },
  forget: {
    title: 'Clear the history of {name}?',
    text: 'The guardian forgets the crashes, restarts and updates of the app. This cannot be undone.',
  },
  /** Titles of the confirmations for several apps. */
  many: {
    restart: { one: 'Restart {count} app?', other: 'Restart {count} apps?' },
    install: { one: 'Update {count} app?', other: 'Update {count} apps?' },
    enable: { one: 'Enable {count} app?', other: 'Enable {count} apps?' },
    disable: { one: 'Disable {count} app?', other: 'Disable {count} apps?' },
    watch: { one: 'Watch {count} app?', other: 'Watch {count} apps?' },
    unwatch: { one: 'Stop watching {count} app?', other: 'Stop watching {count} apps?' },
    snooze: { one: 'Snooze the guardian for {count} app?', other: 'Snooze the guardian for {count} apps?' },
  },
})

type Key = AppCommand | 'watch' | 'unwatch' | 'snooze-1h' | 'snooze-8h' | 'snooze-tomorrow' | 'forget'

export interface Action {
  readonly key: Key
  readonly command: AppCommand
  /** The label; default: the name of the command. */
  readonly name?: (entry?: AppEntry) => string
  readonly glyph: GlyphName
  readonly danger?: true
  /** Whether the action is offered for the app. */
  readonly fits: (entry: AppEntry) => boolean
  /** The confirmation, whose button has the action's name. */
  readonly question?: (entry: AppEntry) => Omit<Question, 'action'>
  /** The title of the confirmation for several apps; if missing, the action is only for one app. */
  readonly many?: (values: { readonly count: number }) => string
  /** What the confirmation for several apps shows for each app in addition to its name. */
  readonly about?: (entry: AppEntry) => Pick<Listed, 'about' | 'note'>
  readonly payload?: (entry: AppEntry, answer: Confirmation) => object
}

/** Describes an update: the old and the new version, and the changelog, which the contract limits to 255 characters. */
function newIn(entry: AppEntry): Pick<Listed, 'about' | 'note'> {
  const { version, latest_version, update_severity: step } = entry.app.value
  const to = latest_version ?? text.update.unnamed
  const versions = text.update.versions({ from: version ?? terms.unknown, to })
  const severity = step !== null && step !== 'none' && text.update.severities[step]
  const about = severity ? text.update.severity({ versions, severity }) : versions
  const published = readTopic(entry, 'appUpdate')
  // The two topics do not change at the same time.
  const isSame = published?.latest_version === latest_version
  return { about, note: isSame ? published?.release_summary : undefined }
}

const guardOf = (entry: AppEntry) => readTopic(entry, 'guard')?.state
const isGuarded = (entry: AppEntry) => ![undefined, 'off'].includes(guardOf(entry))

const HOUR_MS = 3_600_000
const MORNING = 8

const inHours = (hours: number) => () => Date.now() + hours * HOUR_MS

function tomorrow(): number {
  const at = new Date()
  at.setDate(at.getDate() + 1)
  return at.setHours(MORNING, 0, 0, 0)
}

const GUARDIAN = { command: 'guard', fits: isGuarded } as const

function snooze(key: Key, name: () => string, until: () => number): Action {
  const payload = () => ({ snooze: `${Math.ceil((until() - Date.now()) / 1000)}s` })
  return { ...GUARDIAN, key, name, glyph: 'dark', many: text.many.snooze, payload }
}

const dangerous = (said: typeof text.disable) => (entry: AppEntry) => {
  return { title: said.title({ name: entry.name.value }), text: said.text, danger: true }
}

const isOn = ({ app }: AppEntry) => app.value.enabled !== false

export const UPDATE: Action = {
  key: 'install',
  command: 'install',
  glyph: 'update',
  fits: ({ app }) => app.value.update_available === true,
  question: (entry) => ({
    title: text.update.title({ name: entry.name.value }),
    text: text.update.text,
    list: [{ name: entry.name.value, ...newIn(entry) }],
  }),
  many: text.many.install,
  about: newIn,
}

const ACTIONS: readonly Action[] = [
  { key: 'restart', command: 'restart', glyph: 'restart', fits: isOn, many: text.many.restart },
  UPDATE,
  { key: 'enable', command: 'enable', glyph: 'power', fits: (entry) => !isOn(entry), many: text.many.enable },
  {
    key: 'disable',
    command: 'disable',
    glyph: 'power',
    fits: isOn,
    question: dangerous(text.disable),
    many: text.many.disable,
  },
  {
    key: 'garbage-collect',
    command: 'garbage-collect',
    glyph: 'broom',
    fits: ({ app }) => app.value.state === 'running',
  },
  {
    key: 'watch',
    command: 'guard',
    name: (entry) => (entry && isGuarded(entry) ? text.guardian.watchAgain : text.guardian.watch),
    glyph: 'eye',
    fits: (entry) => ['off', 'snoozed', 'given_up'].includes(guardOf(entry) ?? ''),
    many: text.many.watch,
    payload: () => ({ enabled: true }),
  },
  snooze('snooze-1h', () => text.guardian.snoozeHour, inHours(1)),
  snooze('snooze-8h', () => text.guardian.snoozeHours, inHours(8)),
  snooze('snooze-tomorrow', () => text.guardian.snoozeTomorrow({ time: formatClock(tomorrow()) }), tomorrow),
  {
    ...GUARDIAN,
    key: 'unwatch',
    name: () => text.guardian.unwatch,
    glyph: 'pause',
    many: text.many.unwatch,
    payload: () => ({ enabled: false }),
  },
  {
    ...GUARDIAN,
    key: 'forget',
    name: () => text.guardian.forget,
    glyph: 'broom',
    question: dangerous(text.forget),
    payload: () => ({ forget: true }),
  },
  {
    key: 'uninstall',
    command: 'uninstall',
    glyph: 'trash',
    danger: true,
    fits: () => true,
    question: ({ name, id }) => ({
      title: text.uninstall.title({ name: name.value }),
      text: text.uninstall.text({ id }),
      option: text.uninstall.option,
      danger: true,
    }),
    payload: ({ id }, { option }) => ({ confirm: id, ...(option && { purge_settings: true }) }),
  },
]

/** The actions that are possible for several apps. */
export const MANY = ACTIONS.filter(({ many }) => many !== undefined)

export const actionName = ({ name, command }: Action, entry?: AppEntry): string => name?.(entry) ?? commandName(command)

/** The actions that an app offers now; refused ones with the reason. */
export function actionsOf(entry: AppEntry, page: PageContext): (MenuItem & Pick<Action, 'key' | 'command'>)[] {
  const busy = entry.running.value === undefined ? undefined : terms.busy
  return ACTIONS.filter(({ fits }) => fits(entry)).map((action) => ({
    ...action,
    label: actionName(action, entry),
    refused: busy ?? refusal(page, entry.target, action.command),
    act: () => void runAction(entry, action.key),
  }))
}

/** Runs an action, after its confirmation if it has one. */
export async function runAction(entry: AppEntry, key: Key): Promise<void> {
  const action = ACTIONS.find((one) => one.key === key)
  if (action === undefined) return
  const { question, payload, command } = action
  const answer = question ? await confirm({ ...question(entry), action: actionName(action) }) : { option: false }
  if (answer !== undefined) await actOn(entry, command, payload?.(entry, answer))
}
