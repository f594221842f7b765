/** The actions on an app, in menus and on its page: one row each, with the confirmation that comes first. */
import { type AppCommand, actOn, commandName, refusal } from './commands.ts'
import type { AppEntry } from './live/entries.ts'
import type { GlyphName } from './parts/icons.tsx'
import { type Confirmation, confirm, type MenuItem, type Question } from './parts/overlays.tsx'
import type { PageContext } from './session.ts'
import { defineStrings } from './strings.ts'

const text = defineStrings('actions', {
  busy: 'A command is under way.',
  disable: {
    title: 'Disable {name}?',
    text: 'The hub stops the app. Its devices and flows do not work until it is enabled again.',
  },
  uninstall: {
    title: 'Uninstall {name}?',
    text: 'The hub removes {id} with its devices. Flows that use it break. This cannot be undone.',
    option: 'Remove its settings too',
  },
})

interface Action {
  readonly command: AppCommand
  readonly glyph: GlyphName
  readonly danger?: true
  /** Whether it is offered at all. */
  readonly fits: (entry: AppEntry) => boolean
  /** The confirmation. Its button has the action's name. */
  readonly question?: (entry: AppEntry) => Omit<Question, 'action'>
  readonly payload?: (entry: AppEntry, answer: Confirmation) => object
}

const ACTIONS: readonly Action[] = [
  { command: 'restart', glyph: 'restart', fits: ({ app }) => app.value.enabled !== false },
  { command: 'install', glyph: 'update', fits: ({ app }) => app.value.update_available === true },
  { command: 'enable', glyph: 'power', fits: ({ app }) => app.value.enabled === false },
  {
    command: 'disable',
    glyph: 'power',
    fits: ({ app }) => app.value.enabled !== false,
    question: (entry) => ({
      title: text.disable.title({ name: entry.name.value }),
      text: text.disable.text,
      danger: true,
    }),
  },
  { command: 'garbage-collect', glyph: 'broom', fits: ({ app }) => app.value.state === 'running' },
  {
    command: 'uninstall',
    glyph: 'trash',
    danger: true,
    fits: () => true,
    question: (entry) => ({
      title: text.uninstall.title({ name: entry.name.value }),
      text: text.uninstall.text({ id: entry.id }),
      option: text.uninstall.option,
      danger: true,
    }),
    payload: ({ id }, { option }) => ({ confirm: id, ...(option && { purge_settings: true }) }),
  },
]

/** The actions offered for an app now, with the reasons for refused ones. */
export function actionsOf(entry: AppEntry, page: PageContext): (MenuItem & Pick<Action, 'command'>)[] {
  const busy = entry.running.value === undefined ? undefined : text.busy
  return ACTIONS.filter(({ fits }) => fits(entry)).map((action) => ({
    ...action,
    label: commandName(action.command),
    refused: busy ?? refusal(page, { hub: entry.hub, app: entry.id }, action.command),
    choose: () => void runAction(entry, action.command),
  }))
}

/** Runs an action, after its confirmation if it has one. */
export async function runAction(entry: AppEntry, command: AppCommand): Promise<void> {
  const { question, payload } = ACTIONS.find((action) => action.command === command) ?? {}
  const answer = question ? await confirm({ ...question(entry), action: commandName(command) }) : { option: false }
  if (answer !== undefined) await actOn(entry, command, payload?.(entry, answer))
}
