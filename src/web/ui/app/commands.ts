/** Commands as over MQTT: whether they are possible, sending them, and what came of them. */
import { signal } from '@preact/signals'
import { type CommandName, findCommand } from '../../../contract/commands.ts'
import { commandKey } from '../../../contract/permissions.ts'
import type { Session } from '../../server/api/protocol.ts'
import { type Ended, type For, sendCommand } from './api.ts'
import { formatDuration } from './format.ts'
import type { Channel } from './live/channel.ts'
import type { AppEntry, Outcome } from './live/entries.ts'
import type { Store } from './live/store.ts'
import { toast } from './parts/toasts.tsx'
import { S } from './strings.ts'

export type AppCommand = CommandName<'app'>
export type HubCommand = CommandName<'hub'>

/** What a view needs to act. */
export interface Door {
  readonly session: Session
  readonly store: Store
  readonly channel: Channel
}

/** Why a command is not possible now; `undefined` if nothing is known to be in the way. */
export function refusal({ session, store, channel }: Door, target: For, name: string): string | undefined {
  const kind = target.app !== undefined ? 'app' : target.hub !== undefined ? 'hub' : 'bridge'
  const command = findCommand(kind, name, false)
  if (command === undefined) return S.refused.unknown
  if (session.access !== 'full') return S.refused.readOnly
  if (channel.liveness.value !== 'live') return S.refused.stale
  if (target.hub === undefined) return undefined
  const owner = store.ownerElsewhere(target.hub)
  if (owner !== undefined) return S.refused.elsewhere(owner)
  if (store.fleet.value?.acts === false) return S.refused.noLease
  const refused = store.refusals.value[target.hub]?.[commandKey(command)]
  if (refused !== undefined) return refused
  return store.isAway(target.hub) ? S.refused.hubOffline : undefined
}

/** What is told of an end. */
export function outcomeOf(command: string, ended: Ended): Outcome {
  const name = S.commands[command] ?? command
  if (!ended.ok) return { ok: false, command, text: S.outcome.failed(name, ended.error.message) }
  return { ok: true, command, text: S.outcome.done(name, formatDuration(ended.duration_ms)) }
}

/** How long a good end stays on the row. A bad one stays until the next command. */
const SHOWN_MS = 8_000

/** Sends a command to an app, and shows on its row how it goes. */
export async function actOn(entry: AppEntry, command: AppCommand, payload?: object | string): Promise<Ended> {
  entry.running.value = { command }
  entry.outcome.value = undefined
  const ended = await sendCommand({ hub: entry.hub, app: entry.id }, command, textOf(payload))
  const outcome = outcomeOf(command, ended)
  entry.running.value = undefined
  entry.outcome.value = outcome
  toast(outcome.ok, S.outcome.of(nameOf(entry), outcome.text))
  if (outcome.ok) {
    setTimeout(() => {
      if (entry.outcome.value === outcome) entry.outcome.value = undefined
    }, SHOWN_MS)
  }
  return ended
}

/** Sends a command to a hub or the bridge, and tells how it ended. */
export async function act(target: For, command: string, payload?: object | string): Promise<Ended> {
  const ended = await sendCommand(target, command, textOf(payload))
  const outcome = outcomeOf(command, ended)
  toast(outcome.ok, target.hub === undefined ? outcome.text : S.outcome.of(target.hub, outcome.text))
  return ended
}

function textOf(payload: object | string = ''): string {
  return typeof payload === 'string' ? payload : JSON.stringify(payload)
}

export function nameOf({ app, id }: AppEntry): string {
  return app.value.name?.trim() || id
}

/** Restarts one after the other. */
export interface Bulk {
  readonly all: readonly AppEntry[]
  readonly done: number
  readonly state: 'running' | 'stopping' | 'stopped' | 'failed' | 'done'
}

export const bulk = signal<Bulk | undefined>(undefined)

/** Stops at the first failure, or when asked to. */
export async function restartAll(all: readonly AppEntry[]): Promise<void> {
  bulk.value = { all, done: 0, state: 'running' }
  for (const [index, entry] of all.entries()) {
    if (bulk.value.state === 'stopping') {
      bulk.value = { all, done: index, state: 'stopped' }
      return
    }
    const { ok } = await actOn(entry, 'restart')
    const { state }: Bulk = bulk.value
    bulk.value = { all, done: ok ? index + 1 : index, state: ok ? state : 'failed' }
    if (!ok) return
  }
  bulk.value = { all, done: all.length, state: 'done' }
}

export function stopBulk(): void {
  if (bulk.value?.state === 'running') bulk.value = { ...bulk.value, state: 'stopping' }
}
