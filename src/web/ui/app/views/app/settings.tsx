/** An app's settings: names first, values on demand, and what looks like a secret only one by one. */
import { useSignal } from '@preact/signals'
import { isRecord } from '../../../../../base/json.ts'
import { sendCommand } from '../../api.ts'
import { refusal } from '../../commands.ts'
import { collator } from '../../format.ts'
import { Glyph } from '../../parts/glyph.tsx'
import { Action, Card, Copy } from '../../parts/small.tsx'
import { S } from '../../strings.ts'
import type { PartProps } from './app.tsx'

const SECRET = /pass|secret|token|key|auth|credential|cookie|session|private|\bpin\b|\bpsk\b/i

export function Settings({ entry, door }: PartProps) {
  const target = { hub: entry.hub, app: entry.id }
  const values = useSignal<Readonly<Record<string, unknown>> | undefined>(undefined)
  const shown = useSignal<ReadonlySet<string>>(new Set())
  const failure = useSignal<string | undefined>(undefined)
  const busy = useSignal(false)
  const read = async () => {
    busy.value = true
    const ended = await sendCommand(target, 'get-settings')
    busy.value = false
    failure.value = ended.ok ? undefined : ended.error.message
    if (ended.ok) values.value = isRecord(ended.data) ? ended.data : {}
    shown.value = new Set()
  }
  const names = Object.keys(values.value ?? {}).toSorted(collator.compare)
  const plain = names.filter((name) => !SECRET.test(name))
  const toggle = (name: string) => {
    const next = new Set(shown.value)
    if (!next.delete(name)) next.add(name)
    shown.value = next
  }
  return (
    <Card
      title={S.settings.title}
      wide
      aside={
        <div class="buttons">
          {plain.length > 0 && (
            <button
              type="button"
              onClick={() => {
                shown.value = shown.value.size > 0 ? new Set() : new Set(plain)
              }}
            >
              {shown.value.size > 0 ? S.settings.hideAll : S.settings.showAll}
            </button>
          )}
          <Action
            label={values.value === undefined ? S.settings.read : S.settings.readAgain}
            busy={busy.value}
            refused={refusal(door, target, 'get-settings')}
            act={() => void read()}
          />
        </div>
      }
    >
      {failure.value !== undefined && <p class="bad-text">{failure.value}</p>}
      {values.value === undefined ? (
        <p class="empty small">{S.settings.hint}</p>
      ) : names.length === 0 ? (
        <p class="empty small">{S.settings.none}</p>
      ) : (
        <ul class="settings">
          {names.map((name) => (
            <Setting
              key={name}
              name={name}
              value={values.value?.[name]}
              shown={shown.value.has(name)}
              toggle={() => toggle(name)}
            />
          ))}
        </ul>
      )}
    </Card>
  )
}

/** Characters of a value that stay on one line. */
const LINE = 80

interface SettingProps {
  readonly name: string
  readonly value: unknown
  readonly shown: boolean
  readonly toggle: () => void
}

function Setting({ name, value, shown, toggle }: SettingProps) {
  const line = typeof value === 'string' ? value : JSON.stringify(value)
  const text = typeof value === 'string' || line.length <= LINE ? line : JSON.stringify(value, null, 2)
  return (
    <li>
      <code>{name}</code>
      {SECRET.test(name) && !shown && <small>{S.settings.secret}</small>}
      <span class="value">{shown ? <code>{text}</code> : <span aria-hidden="true">••••••</span>}</span>
      {shown && <Copy text={text} label={S.settings.copy(name)} />}
      <button
        type="button"
        class="icon"
        aria-pressed={shown}
        aria-label={S.settings.show(name)}
        title={shown ? S.settings.hide : S.settings.showOne}
        onClick={toggle}
      >
        <Glyph name="eye" size={16} />
      </button>
    </li>
  )
}
