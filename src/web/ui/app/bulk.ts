/** An action on several apps, one after another. It stops at the first failure, or on request. */
import { effect, signal } from '@preact/signals'
import { type Action, actionName } from './actions.ts'
import { actOn, refusal } from './commands.ts'
import type { AppEntry } from './live/entries.ts'
import { confirm } from './parts/overlays.tsx'
import { type PageContext, stage } from './session.ts'
import { defineStrings } from './strings.ts'
import { terms } from './terms.ts'

const text = defineStrings('bulk', {
  how: 'One after the other. It stops at the first that fails.',
  leftOut: {
    one: '{count} of the selected apps is left out: {why}',
    other: '{count} of the selected apps are left out: {why}',
  },
  ofHub: '{name} ({hub})',
  busy: 'Another action on several apps is under way.',
  noneFits: 'There is nothing to do.',
  lost: 'The connection was lost before the answer came. It may have been done.',
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
  /** Of the first ones. */
  readonly results: readonly Result[]
  /** `lost`: before the next one, there was no connection. */
  readonly state: 'running' | 'stopping' | 'stopped' | 'failed' | 'lost' | 'done'
}

/** It lasts when the view is left. */
export const bulk = signal<Bulk | undefined>(undefined)
export const isUnderWay = () => bulk.value?.state === 'running' || bulk.value?.state === 'stopping'

// Leaving the page would end it.
const stay = (event: Event) => event.preventDefault()
effect(() => (isUnderWay() ? addEventListener('beforeunload', stay) : removeEventListener('beforeunload', stay)))

/** The apps that an action can be done for now; `why` it is not possible for the others. */
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

/** Why an action is possible for none of these apps. */
export function bulkRefusal(page: PageContext, action: Action, entries: readonly AppEntry[]): string | undefined {
  if (isUnderWay()) return text.busy
  const isPossible = (entry: AppEntry) =>
    action.fits(entry) && refusal(page, entry.target, action.command) === undefined
  return entries.some(isPossible) ? undefined : possible(page, action, entries).why
}

const MOST_LISTED = 100

/** Asks, and starts. Returns whether it was started. */
export async function startBulk(page: PageContext, action: Action, entries: readonly AppEntry[]): Promise<boolean> {
  const { able, why } = possible(page, action, entries)
  const [first] = able
  if (first === undefined || isUnderWay()) return false
  const out = entries.length - able.length
  const hasHubs = page.store.own.value.length > 1
  const nameOf = ({ hub, name }: AppEntry) => (hasHubs ? text.ofHub({ name: name.value, hub }) : name.value)
  const list = able.slice(0, MOST_LISTED).map((entry) => ({ name: nameOf(entry), ...action.about?.(entry) }))
  const more = able.length - list.length
  const question = {
    title: action.many?.({ count: able.length }) ?? '',
    text: out === 0 ? text.how : `${text.how} ${text.leftOut({ count: out, why })}`,
    list: more > 0 ? [...list, { name: terms.more({ count: more }) }] : list,
    action: actionName(action),
    danger: action.question?.(first).danger ?? false,
  }
  const isAsked = able.length > 1 || out > 0 || action.question !== undefined
  if ((isAsked && (await confirm(question)) === undefined) || isUnderWay()) return false
  const all = able.map((entry) => ({ hub: entry.hub, id: entry.id, name: nameOf(entry) }))
  bulk.value = { action, all, results: [], state: 'running' }
  void proceed()
  return true
}

/** Goes on after the app that failed, which is not tried again. */
export function goOn(): void {
  if (bulk.value === undefined || isUnderWay()) return
  bulk.value = { ...bulk.value, state: 'running' }
  void proceed()
}

/** The page as it is now: since the question, apps may be gone, and the session may be another one. */
function livePage(): PageContext | undefined {
  const now = stage.value
  return now.at === 'open' && now.channel.liveness.value === 'live' ? now : undefined
}

export function stopBulk(): void {
  const now = bulk.value
  if (now === undefined || !isUnderWay()) return
  if (livePage() !== undefined) bulk.value = { ...now, state: 'stopping' }
  // The answer may never come.
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
    // It was stopped without waiting for the answer.
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
  // A browser sends a request again if a kept connection is reset: the transaction makes that harmless.
  const transaction = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16)).join('-')
  const payload = { ...action.payload?.(entry, { option: false }), transaction }
  const ended = await actOn(entry, action.command, payload, true)
  if (ended.ok) return { as: 'done' }
  return { as: 'failed', why: entry.outcome.value?.text ?? ended.error.message }
}
