/** What can be done with an app, in menus and on its page: which questions come first, and what is sent. */
import { type AppCommand, actOn, type Door, nameOf, refusal } from './commands.ts'
import type { AppEntry } from './live/entries.ts'
import { type Confirmation, confirm } from './parts/confirm.tsx'
import type { GlyphName } from './parts/glyph.tsx'
import type { MenuItem } from './parts/menu.tsx'
import { S } from './strings.ts'

interface Action {
  readonly command: AppCommand
  readonly glyph: GlyphName
  readonly danger?: true
  /** Whether it is offered at all. */
  readonly fits: (entry: AppEntry) => boolean
}

const always = () => true

const ACTIONS: readonly Action[] = [
  { command: 'restart', glyph: 'restart', fits: ({ app }) => app.value.enabled !== false },
  { command: 'install', glyph: 'update', fits: ({ app }) => app.value.update_available === true },
  { command: 'enable', glyph: 'power', fits: ({ app }) => app.value.enabled === false },
  { command: 'disable', glyph: 'power', fits: ({ app }) => app.value.enabled !== false },
  { command: 'garbage-collect', glyph: 'broom', fits: ({ app }) => app.value.state === 'running' },
  { command: 'uninstall', glyph: 'trash', danger: true, fits: always },
]

export interface Offer extends Action {
  readonly label: string
  readonly refused: string | undefined
}

/** What is offered for an app now, with the reason where it is refused. */
export function offersOf(entry: AppEntry, door: Door): Offer[] {
  const busy = entry.running.value === undefined ? undefined : S.refused.busy
  return ACTIONS.filter(({ fits }) => fits(entry)).map((action) => ({
    ...action,
    label: S.commands[action.command] ?? action.command,
    refused: busy ?? refusal(door, { hub: entry.hub, app: entry.id }, action.command),
  }))
}

export function menuOf(entry: AppEntry, door: Door): MenuItem[] {
  return offersOf(entry, door).map(({ label, glyph, danger = false, refused, command }) => ({
    label,
    glyph,
    danger,
    refused,
    choose: () => void confirmAndDo(entry, command),
  }))
}

/** Asks first where it hurts. */
export async function confirmAndDo(entry: AppEntry, command: AppCommand): Promise<void> {
  const name = nameOf(entry)
  if (command === 'disable') {
    const sure = await confirm({
      title: S.confirm.disable.title(name),
      text: S.confirm.disable.text,
      action: S.commands['disable'] ?? command,
      danger: true,
    })
    if (sure) await actOn(entry, command)
  } else if (command === 'uninstall') {
    const sure = await confirm({ ...uninstallQuestion(name, entry.id), danger: true })
    if (sure) await actOn(entry, command, uninstallPayload(entry.id, sure))
  } else await actOn(entry, command)
}

function uninstallQuestion(name: string, id: string) {
  const { title, text, option } = S.confirm.uninstall
  return { title: title(name), text: text(id), action: S.commands['uninstall'] ?? '', option }
}

function uninstallPayload(id: string, { option }: Confirmation) {
  return { confirm: id, ...(option && { purge_settings: true }) }
}
