/** One setting: its value, the field that changes it, and the way back. */
import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { Action, Copy, IconButton, Select, set, submits } from '../../parts/controls.tsx'
import { defineStrings } from '../../strings.ts'
import { terms } from '../../terms.ts'
import { isCut, KINDS, type Kind, kindOf, maySecret, readTyped, textOf } from './value.ts'

const text = defineStrings('setting', {
  show: 'Show',
  hide: 'Hide',
  showOf: 'Show the value of {name}',
  copy: 'Copy the value of {name}',
  change: 'Change',
  changeOf: 'Change the value of {name}',
  secret: 'may be a secret',
  kind: 'Type',
  kinds: { boolean: 'true or false', number: 'number', text: 'text', json: 'JSON' },
  value: 'New value of {name}',
  anew: 'The present value is not shown: enter a new one.',
  save: 'Save',
  back: 'Put back',
  was: 'Before: {value}',
  kept: 'Nothing was changed.',
  unknown: 'It is not known whether the value was changed.',
})

/** Longest former value, in characters. */
const MOST_SHOWN = 300
const MOST_LINES = 12

/** How a change ended. `kept`: it was not made, on request. */
export type Changed =
  | { readonly at: 'done'; readonly before: unknown }
  | { readonly at: 'failed'; readonly message: string }
  | { readonly at: 'kept' }

interface SettingProps {
  readonly name: string
  readonly value: unknown
  readonly shown: boolean
  /** Whether a change may have been made since the value was read. */
  readonly unknown: boolean
  readonly toggle: () => void
  /** Why it cannot be changed. */
  readonly refused: string | undefined
  readonly change: (name: string, value: unknown, before: unknown) => Promise<Changed>
  readonly read: () => void
}

/** A value, which may itself be `undefined`. */
interface Held {
  readonly value: unknown
}

/** What the page may not show or send: the value is masked, or may be a secret that was not asked for. */
const isHidden = ({ name, value, shown }: SettingProps) => isCut(value) || (maySecret(name) && !shown)

/** The states of a change: `edited` is the value when the field was opened, `former` the one to go back to. */
function useChange(props: SettingProps) {
  const edited = useSignal<Held | undefined>(undefined)
  const former = useSignal<Held | undefined>(undefined)
  const busy = useSignal(false)
  const ended = useSignal<Changed | undefined>(undefined)
  const save = async (next: unknown, before: unknown) => {
    busy.value = true
    const now = await props.change(props.name, next, before)
    busy.value = false
    ended.value = now
    if (now.at !== 'done') return
    edited.value = undefined
    former.value = isHidden(props) || isCut(now.before) || now.before === undefined ? undefined : { value: now.before }
  }
  const edit = () => {
    if (!props.shown && !maySecret(props.name)) props.toggle()
    ended.value = undefined
    edited.value = { value: props.value }
  }
  return { edited, former, busy, ended, save, edit }
}

export function Setting(props: SettingProps) {
  const { name, value, shown, unknown, toggle, refused, read } = props
  const { edited, former, busy, ended, save, edit } = useChange(props)
  const base = edited.value
  return (
    <li class="setting">
      <code class="key">{name}</code>
      {maySecret(name) && !shown && <small>{text.secret}</small>}
      <Value value={value} shown={shown} unknown={unknown} />
      {shown && !unknown && <Copy text={textOf(value)} label={text.copy({ name })} />}
      <IconButton
        label={text.showOf({ name })}
        title={shown ? text.hide : text.show}
        glyph="eye"
        size={16}
        pressed={shown}
        act={toggle}
      />
      <IconButton
        label={text.changeOf({ name })}
        title={text.change}
        glyph="edit"
        size={16}
        refused={refused}
        act={edit}
      />
      {base !== undefined && (
        <Editor
          name={name}
          before={base.value}
          isHidden={isHidden(props)}
          busy={busy.value}
          refused={refused}
          save={(next) => void save(next, base.value)}
          cancel={() => set(edited, undefined)}
        />
      )}
      <div class="wide" role="status">
        {ended.value !== undefined && 'message' in ended.value && <p class="bad-text">{ended.value.message}</p>}
        {ended.value?.at === 'kept' && <p>{text.kept}</p>}
        {unknown && (
          <p class="buttons">
            {text.unknown} <Action label={terms.readAgain} act={read} />
          </p>
        )}
        {former.value !== undefined && base === undefined && (
          <p class="buttons">
            {shown && <span>{text.was({ value: textOf(former.value.value).slice(0, MOST_SHOWN) })}</span>}
            <Action
              label={text.back}
              busy={busy.value}
              refused={refused}
              act={() => void save(former.value?.value, value)}
            />
          </p>
        )}
      </div>
    </li>
  )
}

function Value({ value, shown, unknown }: Pick<SettingProps, 'value' | 'shown' | 'unknown'>) {
  if (unknown) return <span class="value">{terms.unknown}</span>
  return <span class="value">{shown ? <code>{textOf(value)}</code> : <span aria-hidden="true">••••••</span>}</span>
}

interface EditorProps extends Pick<SettingProps, 'name' | 'refused'> {
  readonly before: unknown
  /** The field does not show the value then. */
  readonly isHidden: boolean
  readonly busy: boolean
  readonly save: (value: unknown) => void
  readonly cancel: () => void
}

function Editor({ name, before, isHidden: startsEmpty, busy, refused, save, cancel }: EditorProps) {
  const form = useRef<HTMLFormElement>(null)
  const kind = useSignal<Kind>(kindOf(before))
  const typed = useSignal(startsEmpty ? '' : textOf(before))
  const problem = useSignal('')
  useEffect(() => form.current?.querySelector<HTMLElement>('.new')?.focus(), [])
  const submit = () => {
    const read = readTyped(kind.value, typed.value)
    problem.value = read.ok ? '' : read.message
    if (read.ok && !busy && refused === undefined) save(read.value)
  }
  return (
    <form ref={form} class="wide edit" onSubmit={submits(submit)} onKeyDown={({ key }) => key === 'Escape' && cancel()}>
      {startsEmpty && <p class="quiet">{text.anew}</p>}
      <Field name={name} kind={kind.value} typed={typed} />
      <p class="bad-text" role="alert">
        {problem.value}
      </p>
      <div class="buttons">
        <Action label={text.save} tone="primary" busy={busy} refused={refused} act={submit} />
        <Action label={terms.cancel} act={cancel} />
        <label class="check">
          {text.kind}
          <Select
            options={KINDS}
            chosen={kind.value}
            choose={(one) => set(kind, one)}
            nameOf={(one) => text.kinds[one]}
          />
        </label>
      </div>
    </form>
  )
}

function Field({ name, kind, typed }: { readonly name: string; readonly kind: Kind; readonly typed: Signal<string> }) {
  const shared = {
    class: 'new',
    'aria-label': text.value({ name }),
    value: typed.value,
    onInput: ({ currentTarget }: { currentTarget: { value: string } }) => set(typed, currentTarget.value),
  }
  if (kind === 'number') return <input {...shared} inputMode="decimal" />
  if (kind !== 'boolean') return <textarea {...shared} rows={Math.min(MOST_LINES, typed.value.split('\n').length)} />
  return (
    <select {...shared}>
      {['', 'true', 'false'].map((one) => (
        <option key={one}>{one}</option>
      ))}
    </select>
  )
}
