/** Runs an action on several apps, one after another, until the first failure or a request to stop. */
import { effect, signal } from '@preact/signals'
import { type Action, actionName } from './actions.ts'
import { actOn, refusal } from './commands.ts'
import type { AppEntry } from './live/store.ts'
import { confirm } from './parts/overlays.tsx'
import { type PageContext, stage } from './session.ts'
import { defineStrings, terms } from './terms.ts'

const text = defineStrings('bulk', {
  how: 'The apps are processed one after the other. The first failure stops the action.',
  leftOut: {
    one: '{count} of the selected apps is left out: {why}',
    other: '{count} of the selected apps are left out: {why}',
  },
  ofHub: '{name} ({hub})',
  busy: 'Another action on several apps is in progress.',
  noneFits: 'There is nothing to do.',
  lost: 'The connection was lost before the answer arrived. The command may have been executed.',
})

interface Target {
  readonly hub: string
  readonly id: string
  readonly name: string
}

type Result = { readonly as: 'done' | 'skipped' } | { readonly as: 'failed'; readonly why: string }

interface Bulk {
  readonly action: Action
  readonly all: readonly Target[]
  /** The results of the apps so far. */
  readonly results: readonly Result[]
  /** `lost`: the connection was lost before the next app. */
  readonly state: 'running' | 'stopping' | 'stopped' | 'failed' | 'lost' | 'done'
}

/** The current action, which continues when the user leaves the view. */
export const bulk = signal<Bulk | undefined>(undefined)
export const isInProgress = () => bulk.value?.state === 'running' || bulk.value?.state === 'stopping'

// Ask before the user leaves the page, which would stop the action.
const stay = (event: Event) => event.preventDefault()
effect(() => (isInProgress() ? addEventListener('beforeunload', stay) : removeEventListener('beforeunload', stay)))

/** The apps for which the action is possible now, and why it is not possible for the others. */
function possible(page: PageContext, action: Action, entries: readonly AppEntry[]) {
  const able: AppEntry[] = []
  let why: string | undefined
  for (const entry of entries.filter(action.fits)) {
    const refused = refusal(page, entry.target, action.command)
    if (refused === undefined) able.push(entry)
    else why ??= refused
  }
  return { able, why: why ?? text.noneFits }
}

/** Why the action is not possible for any of these apps. */
export function bulkRefusal(page: PageContext, action: Action, entries: readonly AppEntry[]): string | undefined {
  if (isInProgress()) return text.busy
  const isPossible = (entry: AppEntry) =>
    action.fits(entry) && refusal(page, entry.target, action.command) === undefined
  return entries.some(isPossible) ? undefined : possible(page, action, entries).why
}

const MAX_LISTED = 100

/** Asks for confirmation and starts the action. Returns whether it was started. */
export async function startBulk(page: PageContext, action: Action, entries: readonly AppEntry[]): Promise<boolean> {
  const { able, why } = possible(page, action, entries)
  const [first] = able
  if (first === undefined || isInProgress()) return false
  const out = entries.length - able.length
  const hasHubs = page.store.own.value.length > 1
  const nameOf = ({ hub, name }: AppEntry) => (hasHubs ? text.ofHub({ name: name.value, hub }) : name.value)
  const list = able.slice(0, MAX_LISTED).map((entry) => ({ name: nameOf(entry), ...action.about?.(entry) }))
  const more = able.length - list.length
  const question = {
    title: action.many?.({ count: able.length }) ?? '',
    text: out === 0 ? text.how : `${text.how} ${text.leftOut({ count: out, why })}`,
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

/** Continues after the app that failed, without trying that app again. */
export function resumeBulk(): void {
  if (bulk.value === undefined || isInProgress()) return
  bulk.value = { ...bulk.value, state: 'running' }
  void proceed()
}

/** The current page: since the confirmation, apps may have been removed and the session may have changed. */
function livePage(): PageContext | undefined {
  const now = stage.value
  return now.at === 'open' && now.channel.liveness.value === 'live' ? now : undefined
}

export function stopBulk(): void {
  const now = bulk.value
  if (now === undefined || !isInProgress()) return
  if (livePage() !== undefined) bulk.value = { ...now, state: 'stopping' }
  // The answer may never arrive.
  else bulk.value = { ...now, results: [...now.results, { as: 'failed', why: text.lost }], state: 'stopped' }
}

async function proceed(): Promise<void> {
  for (let now = bulk.value; now?.state === 'running'; now = bulk.value) {
    const target = now.all[now.results.length]
    const page = livePage()
    if (target === undefined || page === undefined) {
      bulk.value = { ...now, state: target === undefined ? 'done' : 'lost' }
      return
    }
    const result = await takeStep(page, now.action, target)
    const after = bulk.value
    // The action was stopped without waiting for the answer.
    if (after?.all !== now.all || after.results !== now.results) return
    const results = [...now.results, result]
    const isLast = results.length === now.all.length
    const state = after.state === 'stopping' && !isLast ? 'stopped' : 'running'
    bulk.value = { ...after, results, state: result.as === 'failed' ? 'failed' : state }
  }
}

async function takeStep(page: PageContext, action: Action, { hub, id }: Target): Promise<Result> {
  const refused = refusal(page, { hub, app: id }, action.command)
  if (refused !== undefined) return { as: 'failed', why: refused }
  const entry = page.store.app(hub, id)
  if (entry === undefined || !action.fits(entry)) return { as: 'skipped' }
  if (entry.running.value !== undefined) return { as: 'failed', why: terms.busy }
  // A browser repeats a request if a keep-alive connection is reset: the transaction makes that harmless.
  const transaction = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16)).join('-')
  const payload = { ...action.payload?.(entry, { option: false }), transaction }
  const ended = await actOn(entry, action.command, payload, true)
  if (ended.ok) return { as: 'done' }
  return { as: 'failed', why: entry.outcome.value?.text ?? ended.error.message }
}
