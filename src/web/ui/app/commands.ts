import { type CommandName, findCommand } from '../../../contract/commands.ts'
import { commandKey } from '../../../contract/permissions.ts'
import { type Ended, type For, sendCommand } from './api.ts'
import type { AppEntry, Outcome } from './live/store.ts'
import type { Answer } from './parts/controls.tsx'
import { toast } from './parts/overlays.tsx'
import type { PageContext } from './session.ts'
import { defineStrings, formatDuration, inLanguage, terms, textFor } from './terms.ts'

export type AppCommand = CommandName<'app'>

const text = defineStrings('commands', {
  done: '{command}: done in {duration}',
  failed: '{command}: {why}',
  of: '{name} – {outcome}',
  refused: {
    unknown: 'There is no such command.',
    offline: 'The hub is offline.',
    elsewhere: 'This hub belongs to the fleet member {member}: use the page of that member.',
    noLease: 'This fleet member has no lease now.',
  },
})

/** Returns the reason if the page cannot send any command now. */
export function pageRefusal({ session, channel }: Pick<PageContext, 'session' | 'channel'>): string | undefined {
  if (session.access !== 'full') return terms.readOnly
  return channel.liveness.value === 'live' ? undefined : terms.noConnection
}

/** Returns the reason if the command is known to be impossible now. */
export function refusal(page: PageContext, target: For, name: string): string | undefined {
  const { store } = page
  const kind = target.app !== undefined ? 'app' : target.hub !== undefined ? 'hub' : 'bridge'
  const command = findCommand(kind, name, false)
  if (command === undefined) return text.refused.unknown
  const general = pageRefusal(page)
  if (general !== undefined) return general
  if (target.hub === undefined) return undefined
  const member = store.ownerElsewhere(target.hub)
  if (member !== undefined) return text.refused.elsewhere({ member })
  if (store.fleet.value?.acts === false) return text.refused.noLease
  const refused = store.refusals.value[target.hub]?.[commandKey(command)]
  if (refused !== undefined) return inLanguage(refused)
  return store.isAway(target.hub) ? text.refused.offline : undefined
}

export const commandName = (command: string): string => textFor(terms.commands, command)

function outcomeOf(command: string, ended: Ended): Outcome {
  return {
    ok: ended.ok,
    ...(!ended.ok && { code: ended.error.code }),
    // A getter, because the user may change the language before the text is shown.
    get text() {
      const name = commandName(command)
      if (!ended.ok) return text.failed({ command: name, why: inLanguage(ended.error.message) })
      return text.done({ command: name, duration: formatDuration(ended.duration_ms) })
    },
  }
}

/** How long an app's row shows a success. A failure is shown until the next command, or until the hub is reachable. */
const SHOWN_MS = 8_000

/** Runs a command and shows its progress in the app's row. @param isQuiet whether to suppress the result's notice */
export async function actOn(entry: AppEntry, command: AppCommand, payload?: object | string, isQuiet = false) {
  entry.running.value = command
  entry.outcome.value = undefined
  const ended = await sendCommand(entry.target, command, payload)
  const outcome = outcomeOf(command, ended)
  entry.running.value = undefined
  entry.outcome.value = outcome
  if (!isQuiet) toast(outcome.ok, text.of({ name: entry.name.value, outcome: outcome.text }))
  if (outcome.ok) {
    setTimeout(() => {
      if (entry.outcome.value === outcome) entry.outcome.value = undefined
    }, SHOWN_MS)
  }
  return ended
}

export async function dataOf(target: For, command: AppCommand, payload?: object): Promise<Answer> {
  const ended = await sendCommand(target, command, payload)
  return ended.ok ? { ok: true, value: ended.data } : { ok: false, message: inLanguage(ended.error.message) }
}

export async function act(target: For, command: string, payload?: object | string): Promise<Ended> {
  const ended = await sendCommand(target, command, payload)
  const outcome = outcomeOf(command, ended)
  toast(outcome.ok, target.hub === undefined ? outcome.text : text.of({ name: target.hub, outcome: outcome.text }))
  return ended
}
