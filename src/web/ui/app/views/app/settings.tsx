/** An app's settings: names first, values on demand, and possible secrets only one by one. */
import { useSignal } from '@preact/signals'
import { isRecord } from '../../../../../base/json.ts'
import { type Ended, sendCommand } from '../../api.ts'
import { commandName, refusal } from '../../commands.ts'
import { collator } from '../../format.ts'
import { Action, Copy, IconButton, set, useAsked } from '../../parts/controls.tsx'
import { Card } from '../../parts/layout.tsx'
import type { AppProps } from '../../parts/state.tsx'
import { usePage } from '../../session.ts'
import { defineStrings } from '../../strings.ts'

const text = defineStrings('settings', {
  title: 'Settings',
  hint: 'Read from the hub on demand.',
  none: 'The app has no settings.',
  readAgain: 'Read again',
  showAll: 'Show values',
  hideAll: 'Hide values',
  show: 'Show',
  hide: 'Hide',
  showOf: 'Show the value of {name}',
  copy: 'Copy the value of {name}',
  secret: 'may be a secret',
})

const SECRET = /pass|secret|token|key|auth|credential|cookie|session|private|\bpin\b|\bpsk\b/i
const NO_NAMES: ReadonlySet<string> = new Set()

export function Settings({ entry }: AppProps) {
  const page = usePage()
  const target = { hub: entry.hub, app: entry.id }
  const { busy, result, ask } = useAsked<Ended>()
  const shown = useSignal(NO_NAMES)
  const read = async () => {
    await ask(() => sendCommand(target, 'get-settings'))
    shown.value = NO_NAMES
  }
  const ended = result.value
  const values = ended?.ok && isRecord(ended.data) ? ended.data : {}
  const names = Object.keys(values).toSorted(collator.compare)
  const plain = names.filter((name) => !SECRET.test(name))
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
            label={ended?.ok ? text.readAgain : commandName('get-settings')}
            busy={busy.value}
            refused={refusal(page, target, 'get-settings')}
            act={() => void read()}
          />
        </div>
      }
    >
      {ended?.ok === false && <p class="bad-text">{ended.error.message}</p>}
      {names.length === 0 ? (
        <p class="empty small">{ended?.ok ? text.none : text.hint}</p>
      ) : (
        <ul class="lines">
          {names.map((name) => (
            <Setting
              key={name}
              name={name}
              value={values[name]}
              shown={shown.value.has(name)}
              toggle={() => set(shown, shown.value.symmetricDifference(new Set([name])))}
            />
          ))}
        </ul>
      )}
    </Card>
  )
}

/** Longest value, in characters, that stays on one line. */
const LINE = 80

interface SettingProps {
  readonly name: string
  readonly value: unknown
  readonly shown: boolean
  readonly toggle: () => void
}

function Setting({ name, value, shown, toggle }: SettingProps) {
  const line = typeof value === 'string' ? value : JSON.stringify(value)
  const whole = typeof value === 'string' || line.length <= LINE ? line : JSON.stringify(value, null, 2)
  return (
    <li>
      <code class="key">{name}</code>
      {SECRET.test(name) && !shown && <small>{text.secret}</small>}
      <span class="value">{shown ? <code>{whole}</code> : <span aria-hidden="true">••••••</span>}</span>
      {shown && <Copy text={whole} label={text.copy({ name })} />}
      <IconButton
        label={text.showOf({ name })}
        title={shown ? text.hide : text.show}
        glyph="eye"
        size={16}
        pressed={shown}
        act={toggle}
      />
    </li>
  )
}
