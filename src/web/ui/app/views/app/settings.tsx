/** An app's settings: names first, values on demand, and possible secrets only one by one. Each can be changed. */
import { useSignal } from '@preact/signals'
import { isRecord } from '../../../../../base/json.ts'
import { type Ended, sendCommand } from '../../api.ts'
import { commandName, refusal } from '../../commands.ts'
import { collator } from '../../format.ts'
import { inLanguage } from '../../messages.ts'
import { Action, set, useAsked } from '../../parts/controls.tsx'
import { Card } from '../../parts/layout.tsx'
import { confirm, toast } from '../../parts/overlays.tsx'
import type { AppProps } from '../../parts/state.tsx'
import { usePage } from '../../session.ts'
import { defineStrings } from '../../strings.ts'
import { terms } from '../../terms.ts'
import { type Changed, Setting } from './setting.tsx'
import { isCut, isSame, maySecret, payloadFor, textOf } from './value.ts'

const text = defineStrings('settings', {
  title: 'Settings',
  none: 'The app has no settings.',
  showAll: 'Show values',
  hideAll: 'Hide values',
  done: '{name} is changed.',
  unread: 'Nothing was changed: {why}',
  meanwhile: {
    title: '{name} has changed meanwhile',
    now: 'Its value is now: {value}',
    hidden: 'Something else has given it another value.',
    gone: 'The app no longer has this setting.',
    action: 'Overwrite',
  },
})

const NO_NAMES: ReadonlySet<string> = new Set()
/** Longest value in a question. */
const MOST_ASKED = 300

export function Settings({ entry }: AppProps) {
  const page = usePage()
  const { target } = entry
  const { busy, result, ask } = useAsked<Ended>()
  /** As last read; a later failure leaves them. */
  const values = useSignal<Readonly<Record<string, unknown>> | undefined>(undefined)
  const shown = useSignal(NO_NAMES)
  /** Those that may have been changed since. */
  const unknown = useSignal(NO_NAMES)
  const read = async (): Promise<Ended> => {
    const ended = await ask(() => sendCommand(target, 'get-settings'))
    if (ended.ok) {
      values.value = isRecord(ended.data) ? ended.data : {}
      unknown.value = NO_NAMES
    }
    return ended
  }
  /** Asks before it overwrites what is no longer `before`. */
  const change = async (name: string, value: unknown, before: unknown): Promise<Changed> => {
    const payload = payloadFor(name, value)
    if (!payload.ok) return { at: 'failed', message: payload.message }
    const { ok, error } = { error: undefined, ...(await read()) }
    if (!ok) return { at: 'failed', message: text.unread({ why: inLanguage(error?.message ?? '') }) }
    const now = values.value?.[name]
    if (!isSame(now, before) && !(await mayOverwrite(name, now, shown.value.has(name)))) return { at: 'kept' }
    const ended = await sendCommand(target, 'set-setting', payload.value)
    if (!ended.ok) {
      if (mayHaveHappened(ended.error.code)) unknown.value = unknown.value.union(new Set([name]))
      return { at: 'failed', message: inLanguage(ended.error.message) }
    }
    // What the hub made of it.
    await read()
    toast(true, text.done({ name }))
    return { at: 'done', before: now }
  }
  const names = Object.keys(values.value ?? {}).toSorted(collator.compare)
  const plain = names.filter((name) => !maySecret(name))
  const isAnyShown = shown.value.size > 0
  return (
    <Card
      title={text.title}
      wide
      aside={
        <div class="buttons">
          {plain.length > 0 && (
            <Action
              label={isAnyShown ? text.hideAll : text.showAll}
              act={() => set(shown, isAnyShown ? NO_NAMES : new Set(plain))}
            />
          )}
          <Action
            label={values.value === undefined ? commandName('get-settings') : terms.readAgain}
            busy={busy.value}
            refused={refusal(page, target, 'get-settings')}
            act={() => {
              shown.value = NO_NAMES
              void read()
            }}
          />
        </div>
      }
    >
      {result.value?.ok === false && <p class="bad-text">{inLanguage(result.value.error.message)}</p>}
      {names.length === 0 ? (
        <p class="empty small">{values.value === undefined ? terms.onDemand : text.none}</p>
      ) : (
        <ul class="lines">
          {names.map((name) => (
            <Setting
              key={name}
              name={name}
              value={values.value?.[name]}
              shown={shown.value.has(name)}
              unknown={unknown.value.has(name)}
              toggle={() => set(shown, shown.value.symmetricDifference(new Set([name])))}
              refused={refusal(page, target, 'set-setting')}
              change={change}
              read={() => void read()}
            />
          ))}
        </ul>
      )}
    </Card>
  )
}

/** Whether the command may have been carried out although it failed; without a code there was no answer. */
const mayHaveHappened = (code: string | null) => code === null || code === 'outcome_unknown'

async function mayOverwrite(name: string, now: unknown, isShown: boolean): Promise<boolean> {
  const { title, hidden, gone, action } = text.meanwhile
  const isHidden = isCut(now) || (maySecret(name) && !isShown)
  const shown = isHidden ? hidden : text.meanwhile.now({ value: textOf(now).slice(0, MOST_ASKED) })
  const question = { title: title({ name }), text: now === undefined ? gone : shown, action, danger: true }
  return (await confirm(question)) !== undefined
}
