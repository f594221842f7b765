/**
 * The actions on apps. An action on several apps runs for one app after another. It stops at the first failure, or when
 * the user stops it.
 */
import { effect, signal } from '@preact/signals'
import { type AppCommand, actOn, commandName, refusal } from './commands.ts'
import { type AppEntry, readTopic } from './live/store.ts'
import type { GlyphName } from './parts/icons.tsx'
import { type Confirmation, confirm, type Listed, type MenuItem, type Question } from './parts/overlays.tsx'
import { type PageContext, stage } from './session.ts'
import { defineStrings, formatClock, terms } from './terms.ts'

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
  /** Returns the label of the action; default: the name of the command. */
  readonly name?: (entry?: AppEntry) => string
  readonly glyph: GlyphName
  readonly danger?: true
  readonly fits: (entry: AppEntry) => boolean
  /** The question that the user must confirm. The button's label is the name of the action. */
  readonly question?: (entry: AppEntry) => Omit<Question, 'action'>
  /** The title of the confirmation for several apps. If missing, the action is possible for one app only. */
  readonly many?: (values: { readonly count: number }) => string
  /** Texts that the confirmation for several apps shows beside and below the name of each app. */
  readonly about?: (entry: AppEntry) => Pick<Listed, 'about' | 'note'>
  readonly payload?: (entry: AppEntry, answer: Confirmation) => object
}

/** Returns the old and the new version, and the changelog. The contract limits the changelog to 255 characters. */
function newIn(entry: AppEntry): Pick<Listed, 'about' | 'note'> {
  const { version, latest_version, update_severity: step } = entry.app.value
  const to = latest_version ?? text.update.unnamed
  const versions = text.update.versions({ from: version ?? terms.unknown, to })
  const severity = step !== null && step !== 'none' && text.update.severities[step]
  const about = severity ? text.update.severity({ versions, severity }) : versions
  const published = readTopic(entry, 'appUpdate')
  // Check that the changelog is that of the new version, because the app's two topics do not change at the same time.
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

const dangerous = (confirmation: typeof text.disable) => (entry: AppEntry) => {
  return { title: confirmation.title({ name: entry.name.value }), text: confirmation.text, danger: true }
}

const isOn = ({ app }: AppEntry) => app.value.enabled !== false

function action(key: AppCommand, glyph: GlyphName, fits: Action['fits'], more: Partial<Action> = {}): Action {
  return { key, command: key, glyph, fits, ...more }
}

function guardian(key: Key, glyph: GlyphName, more: Partial<Action>): Action {
  return { key, command: 'guard', glyph, fits: isGuarded, ...more }
}

function snooze(key: Key, name: () => string, until: () => number): Action {
  const payload = () => ({ snooze: `${Math.ceil((until() - Date.now()) / 1000)}s` })
  return guardian(key, 'dark', { name, many: text.many.snooze, payload })
}

export const UPDATE = action('install', 'update', ({ app }) => app.value.update_available === true, {
  question: (entry) => ({
    title: text.update.title({ name: entry.name.value }),
    text: text.update.text,
    list: [{ name: entry.name.value, ...newIn(entry) }],
  }),
  many: text.many.install,
  about: newIn,
})

const ACTIONS: readonly Action[] = [
  action('restart', 'restart', isOn, { many: text.many.restart }),
  UPDATE,
  action('enable', 'power', (entry) => !isOn(entry), { many: text.many.enable }),
  action('disable', 'power', isOn, { question: dangerous(text.disable), many: text.many.disable }),
  action('garbage-collect', 'broom', ({ app }) => app.value.state === 'running'),
  guardian('watch', 'eye', {
    name: (entry) => (entry && isGuarded(entry) ? text.guardian.watchAgain : text.guardian.watch),
    fits: (entry) => ['off', 'snoozed', 'given_up'].includes(guardOf(entry) ?? ''),
    many: text.many.watch,
    payload: () => ({ enabled: true }),
  }),
  snooze('snooze-1h', () => text.guardian.snoozeHour, inHours(1)),
  snooze('snooze-8h', () => text.guardian.snoozeHours, inHours(8)),
  snooze('snooze-tomorrow', () => text.guardian.snoozeTomorrow({ time: formatClock(tomorrow()) }), tomorrow),
  guardian('unwatch', 'pause', {
    name: () => text.guardian.unwatch,
    many: text.many.unwatch,
    payload: () => ({ enabled: false }),
  }),
  guardian('forget', 'broom', {
    name: () => text.guardian.forget,
    question: dangerous(text.forget),
    payload: () => ({ forget: true }),
  }),
  action('uninstall', 'trash', () => true, {
    danger: true,
    question: ({ name, id }) => ({
      title: text.uninstall.title({ name: name.value }),
      text: text.uninstall.text({ id }),
      option: text.uninstall.option,
      danger: true,
    }),
    payload: ({ id }, { option }) => ({ confirm: id, ...(option && { purge_settings: true }) }),
  }),
]

export const MANY = ACTIONS.filter(({ many }) => many !== undefined)

export const actionName = ({ name, command }: Action, entry?: AppEntry): string => name?.(entry) ?? commandName(command)

/** Returns the actions for an app. An action that is not possible now states the reason in `refused`. */
export function actionsOf(entry: AppEntry, page: PageContext): (MenuItem & Pick<Action, 'key' | 'command'>)[] {
  const busy = entry.running.value === undefined ? undefined : terms.busy
  return ACTIONS.filter(({ fits }) => fits(entry)).map((action) => ({
    ...action,
    label: actionName(action, entry),
    refused: busy ?? refusal(page, entry.target, action.command),
    act: () => void runAction(entry, action.key),
  }))
}

export async function runAction(entry: AppEntry, key: Key): Promise<void> {
  const action = ACTIONS.find((one) => one.key === key)
  if (action === undefined) return
  const { question, payload, command } = action
  const answer = question ? await confirm({ ...question(entry), action: actionName(action) }) : { option: false }
  if (answer === undefined) return
  const focused = document.activeElement
  const { ok } = await actOn(entry, command, payload?.(entry, answer))
  // The focused button disappears with the app.
  if (key === 'uninstall' && ok && [focused, document.body].includes(document.activeElement))
    document.querySelector<HTMLElement>('#content')?.focus({ preventScroll: true })
}

const bulkText = defineStrings('bulk', {
  how: 'The apps are processed one after the other. The first failure stops the action.',
  leftOut: {
    one: '{count} of the selected apps is left out: {why}',
    other: '{count} of the selected apps are left out: {why}',
  },
  of: '{name} ({of})',
  busy: 'Another action on several apps is in progress.',
  noneFits: 'There is nothing to do.',
  lost: 'The connection was lost before the answer arrived. The command may have been executed.',
})

type Target = { readonly hub: string; readonly id: string; readonly name: string }

type Result = { readonly as: 'done' | 'skipped' } | { readonly as: 'failed'; readonly why: string }

interface Bulk {
  readonly action: Action
  readonly all: readonly Target[]
  /** The results so far, in the order of `all`. */
  readonly results: readonly Result[]
  /** `lost`: the connection was lost before the action on the next app. */
  readonly state: 'running' | 'stopping' | 'stopped' | 'failed' | 'lost' | 'done'
}

/** The latest action on several apps. The action continues when the user leaves the view. */
export const bulk = signal<Bulk | undefined>(undefined)
export const isInProgress = () => bulk.value?.state === 'running' || bulk.value?.state === 'stopping'

// Leaving the page would stop the action, so the browser asks for confirmation.
const stay = (event: Event) => event.preventDefault()
effect(() => (isInProgress() ? addEventListener('beforeunload', stay) : removeEventListener('beforeunload', stay)))

/** Returns the apps for which the action is possible, and `why`, the reason why it is not possible for another app. */
function possible(page: PageContext, action: Action, entries: readonly AppEntry[]) {
  const able: AppEntry[] = []
  let why: string | undefined
  for (const entry of entries.filter(action.fits)) {
    const refused = refusal(page, entry.target, action.command)
    if (refused === undefined) able.push(entry)
    else why ??= refused
  }
  return { able, why: why ?? bulkText.noneFits }
}

/** Returns the reason if the action is not possible for any of the apps. */
export function bulkRefusal(page: PageContext, action: Action, entries: readonly AppEntry[]): string | undefined {
  if (isInProgress()) return bulkText.busy
  const { able, why } = possible(page, action, entries)
  return able.length > 0 ? undefined : why
}

const MAX_LISTED = 100

/** Asks for confirmation. Resolves to `true` if the action was started. */
export async function startBulk(page: PageContext, action: Action, entries: readonly AppEntry[]): Promise<boolean> {
  const { able, why } = possible(page, action, entries)
  const [first] = able
  if (first === undefined || isInProgress()) return false
  const out = entries.length - able.length
  const hasHubs = page.store.own.value.length > 1
  const namesakes = Object.groupBy(able, ({ hub, name }) => `${hub} ${name.value}`)
  const nameOf = ({ hub, id, name: { value } }: AppEntry) => {
    const isShared = (namesakes[`${hub} ${value}`]?.length ?? 0) > 1
    const name = isShared ? bulkText.of({ name: value, of: id }) : value
    return hasHubs ? bulkText.of({ name, of: hub }) : name
  }
  const list = able.slice(0, MAX_LISTED).map((entry) => ({ name: nameOf(entry), ...action.about?.(entry) }))
  const more = able.length - list.length
  const question = {
    title: action.many?.({ count: able.length }) ?? '',
    text: out === 0 ? bulkText.how : `${bulkText.how} ${bulkText.leftOut({ count: out, why })}`,
    list: more > 0 ? [...list, { name: terms.more({ count: more }) }] : list,
    action: actionName(action),
    danger: action.question?.(first).danger ?? false,
  }
  const needsConfirmation = able.length > 1 || out > 0 || action.question !== undefined
  if ((needsConfirmation && (await confirm(question)) === undefined) || isInProgress()) return false
  const all = able.map((entry) => ({ hub: entry.hub, id: entry.id, name: nameOf(entry) }))
  bulk.value = { action, all, results: [], state: 'running' }
  void proceed()
  return true
}

/** Continues a stopped or failed action with the next app. Does not try the failed app again. */
export function resumeBulk(): void {
  if (bulk.value === undefined || isInProgress()) return
  bulk.value = { ...bulk.value, state: 'running' }
  void proceed()
}

/** Returns the current page, which may have changed since the confirmation; `undefined` without a connection. */
function livePage(): PageContext | undefined {
  const now = stage.value
  return now.at === 'open' && now.channel.liveness.value === 'live' ? now : undefined
}

export function stopBulk(): void {
  const now = bulk.value
  if (now === undefined || !isInProgress()) return
  if (livePage() !== undefined) bulk.value = { ...now, state: 'stopping' }
  // Without a connection, the answer may never arrive, so stop now and count the current app as failed.
  else bulk.value = { ...now, results: [...now.results, { as: 'failed', why: bulkText.lost }], state: 'stopped' }
}

async function proceed(): Promise<void> {
  for (let now = bulk.value; now?.state === 'running'; now = bulk.value) {
    const target = now.all[now.results.length]
    const page = livePage()
    if (target === undefined || page === undefined) {
      bulk.value = { ...now, state: target === undefined ? 'done' : 'lost' }
      return
    }
    const result = await runNext(page, now.action, target)
    const after = bulk.value
    // The user stopped or closed the action while the command was running, so ignore the result.
    if (after?.all !== now.all || after.results !== now.results) return
    const results = [...now.results, result]
    const isLast = results.length === now.all.length
    const state = after.state === 'stopping' && !isLast ? 'stopped' : 'running'
    bulk.value = { ...after, results, state: result.as === 'failed' ? 'failed' : state }
  }
}

async function runNext(page: PageContext, action: Action, { hub, id }: Target): Promise<Result> {
  const refused = refusal(page, { hub, app: id }, action.command)
  if (refused !== undefined) return { as: 'failed', why: refused }
  const entry = page.store.app(hub, id)
  if (entry === undefined || !action.fits(entry)) return { as: 'skipped' }
  if (entry.running.value !== undefined) return { as: 'failed', why: terms.busy }
  // A browser repeats a request if a keep-alive connection is reset. The transaction makes the repetition harmless.
  const transaction = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16)).join('-')
  const payload = { ...action.payload?.(entry, { option: false }), transaction }
  const ended = await actOn(entry, action.command, payload, true)
  if (ended.ok) return { as: 'done' }
  return { as: 'failed', why: entry.outcome.value?.text ?? ended.error.message }
}
