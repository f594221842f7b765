/** Shows an app's settings: names immediately, values on request, and values that may be secret only one by one. */
import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { isRecord } from '../../../../../base/json.ts'
import { type Ended, sendCommand } from '../../api.ts'
import { commandName, refusal } from '../../commands.ts'
import { Action, Card, Copy, IconButton, Select, set, submits, useRequest } from '../../parts/controls.tsx'
import { confirm, toast } from '../../parts/overlays.tsx'
import type { AppProps } from '../../parts/state.tsx'
import { usePage } from '../../session.ts'
import { collator, defineStrings, inLanguage, terms } from '../../terms.ts'
import { isCut, isSame, KINDS, type Kind, kindOf, maySecret, payloadFor, readTyped, textOf } from './value.ts'

const text = defineStrings('settings', {
  title: 'Settings',
  none: 'The app has no settings.',
  showAll: 'Show values',
  hideAll: 'Hide values',
  done: '{name} is changed.',
  unread: 'Nothing was changed: {why}',
  meanwhile: {
    title: '{name} was changed in the meantime',
    now: 'The value is now: {value}',
    hidden: 'Another program has changed the value.',
    gone: 'The app no longer has this setting.',
    action: 'Overwrite',
  },
  setting: {
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
    anew: 'The current value is hidden: enter a new one.',
    untyped: 'Enter a new value first. For an empty text, type something and delete it.',
    save: 'Save',
    back: 'Put back',
    was: 'Before: {value}',
    kept: 'Nothing was changed.',
    unknown: 'The current value is not known.',
  },
})

const NO_NAMES: ReadonlySet<string> = new Set()
/** Maximum length of a value in a confirmation, and of a previous value, in characters. */
const MAX_SHOWN_LENGTH = 300

type SettingsList = Readonly<ReturnType<typeof useSettings>>

function useSettings({ target }: AppProps['entry']) {
  const { busy, result, run } = useRequest<Ended>()
  /** The settings as last read; `undefined` before the first read. */
  const values = useSignal<ReadonlyMap<string, unknown> | undefined>(undefined)
  const shown = useSignal(NO_NAMES)
  /** Names of settings whose value is unknown, because the answer to a write or to the read after it is missing. */
  const unknown = useSignal(NO_NAMES)
  /** Names of settings that were edited in this view. Their lines stay, even if the app removes the setting. */
  const edited = useSignal(NO_NAMES)
  const read = async (): Promise<Ended> => {
    const ended = await run(() => sendCommand(target, 'get-settings'))
    if (ended.ok) {
      values.value = new Map(isRecord(ended.data) ? Object.entries(ended.data) : [])
      unknown.value = NO_NAMES
    }
    return ended
  }
  /** Number of times that the user has read the settings again. Each time, the shown results of changes are removed. */
  const readings = useSignal(0)
  const readAgain = async () => {
    if ((await read()).ok) readings.value += 1
  }
  /** Whether a value must be neither shown nor sent, because it is masked or may be a secret that is still hidden. */
  const isHidden = (name: string, value: unknown) => isCut(value) || (maySecret(name, value) && !shown.value.has(name))
  const mayOverwrite = async (name: string, value: unknown) => {
    const { title, now, hidden, gone, action } = text.meanwhile
    const what = value === undefined ? gone : isHidden(name, value) ? hidden : now({ value: shortened(value) })
    return (await confirm({ title: title({ name }), text: what, action, danger: true })) !== undefined
  }
  /** Changes a setting. Asks for confirmation if its value is no longer `before`. */
  const change = async (name: string, value: unknown, before: unknown): Promise<Changed> => {
    const payload = payloadFor(name, value)
    if (!payload.ok) return { at: 'failed', message: payload.message }
    const { ok, error } = { error: undefined, ...(await read()) }
    if (!ok) return { at: 'failed', message: text.unread({ why: inLanguage(error?.message ?? '') }) }
    const now = values.value?.get(name)
    if (!isSame(now, before) && !(await mayOverwrite(name, now))) return { at: 'kept' }
    const markUnknown = () => set(unknown, unknown.value.union(new Set([name])))
    const ended = await sendCommand(target, 'set-setting', payload.value)
    if (!ended.ok) {
      if (mayHaveHappened(ended.error.code)) markUnknown()
      return { at: 'failed', message: inLanguage(ended.error.message) }
    }
    // Show the values as the hub has stored them.
    if (!(await read()).ok) markUnknown()
    toast(true, text.done({ name }))
    return { at: 'done', before: now }
  }
  return { busy, result, values, shown, unknown, edited, readings, readAgain, isHidden, change }
}

const shortened = (value: unknown) => textOf(value).slice(0, MAX_SHOWN_LENGTH)

export function Settings({ entry }: AppProps) {
  const page = usePage()
  const list = useSettings(entry)
  const { busy, result, values, shown } = list
  const names = [...new Set(values.value?.keys()).union(list.edited.value)].toSorted(collator.compare)
  const plain = names.filter((name) => !maySecret(name, values.value?.get(name)))
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
            refused={refusal(page, entry.target, 'get-settings')}
            act={() => {
              shown.value = NO_NAMES
              void list.readAgain()
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
            <Setting key={name} name={name} list={list} refused={refusal(page, entry.target, 'set-setting')} />
          ))}
        </ul>
      )}
    </Card>
  )
}

/** Returns `true` if the failed command may still have been executed. Without a code, there was no answer. */
const mayHaveHappened = (code: string | null) => code === null || code === 'outcome_unknown'

const MAX_LINES = 12

/** The result of a change. `kept`: the value had changed in the meantime, and the user chose to keep the new value. */
type Changed =
  | { readonly at: 'done'; readonly before: unknown }
  | { readonly at: 'failed'; readonly message: string }
  | { readonly at: 'kept' }

interface SettingProps {
  readonly name: string
  readonly list: SettingsList
  /** Why the setting cannot be changed. */
  readonly refused: string | undefined
}

/** `edited` is the value at the time when the field was opened. `previous` is the value that the user can restore. */
function useChange(name: string, list: SettingsList) {
  const edited = useSignal<{ value: unknown } | undefined>(undefined)
  const previous = useSignal<{ value: unknown } | undefined>(undefined)
  const { busy, result: ended, run } = useRequest<Changed>()
  const value = list.values.value?.get(name)
  const toggle = () => set(list.shown, list.shown.value.symmetricDifference(new Set([name])))
  useEffect(() => set(ended, undefined), [list.readings.value])
  const save = async (next: unknown, base: unknown) => {
    const now = await run(() => list.change(name, next, base))
    if (now.at !== 'done') return
    const { before } = now
    edited.value = undefined
    previous.value = list.isHidden(name, value) || isCut(before) || before === undefined ? undefined : { value: before }
  }
  const edit = () => {
    if (!list.shown.value.has(name) && !maySecret(name, value)) toggle()
    list.edited.value = list.edited.value.union(new Set([name]))
    ended.value = undefined
    edited.value = { value }
  }
  return { value, toggle, edited, previous, busy, ended, save, edit }
}

const PENCIL = ':scope > button:last-of-type'

function Setting({ name, list, refused }: SettingProps) {
  const change = useChange(name, list)
  const { value, toggle, edited, previous, busy, ended, save, edit } = change
  const [shown, unknown] = [list.shown.value.has(name), list.unknown.value.has(name)]
  const base = edited.value
  /** Whether the app no longer has the setting. */
  const isRemoved = value === undefined
  const line = useRef<HTMLLIElement>(null)
  const isOpen = base !== undefined
  useEffect(() => {
    if (!isOpen) return
    // When the editor closes and its focus is lost, focus the button that opened it.
    return () => {
      if (document.activeElement === document.body) line.current?.querySelector<HTMLElement>(PENCIL)?.focus()
    }
  }, [isOpen])
  return (
    <li ref={line} class="setting">
      <code class="key">{name}</code>
      {maySecret(name, value) && !shown && <small>{text.setting.secret}</small>}
      <Value value={value} shown={shown} unknown={unknown} />
      {shown && !unknown && !isRemoved && <Copy text={textOf(value)} label={text.setting.copy({ name })} />}
      {!isRemoved && <Show name={name} shown={shown} toggle={toggle} />}
      <IconButton
        label={text.setting.changeOf({ name })}
        title={text.setting.change}
        glyph="edit"
        size={16}
        refused={refused ?? (isRemoved ? text.meanwhile.gone : undefined)}
        act={edit}
      />
      {isOpen && <Editor name={name} list={list} refused={refused} change={change} before={base.value} />}
      <div class="wide" role="status">
        {ended.value !== undefined && 'message' in ended.value && <p class="bad-text">{ended.value.message}</p>}
        {ended.value?.at === 'kept' && <p>{text.setting.kept}</p>}
        {unknown && (
          <p class="buttons">
            {text.setting.unknown} <Action label={terms.readAgain} act={() => void list.readAgain()} />
          </p>
        )}
        {previous.value !== undefined && base === undefined && (
          <p class="buttons">
            {shown && <span>{text.setting.was({ value: shortened(previous.value.value) })}</span>}
            <Action
              label={text.setting.back}
              busy={busy.value}
              refused={refused}
              act={() => void save(previous.value?.value, value)}
            />
          </p>
        )}
      </div>
    </li>
  )
}

function Show({ name, shown, toggle }: { name: string; shown: boolean; toggle: () => void }) {
  const title = shown ? text.setting.hide : text.setting.show
  const label = text.setting.showOf({ name })
  return <IconButton label={label} title={title} glyph="eye" size={16} pressed={shown} act={toggle} />
}

function Value({ value, shown, unknown }: { value: unknown; shown: boolean; unknown: boolean }) {
  if (unknown) return <span class="value">{terms.unknown}</span>
  if (value === undefined) return <span class="value">{text.meanwhile.gone}</span>
  return <span class="value">{shown ? <code>{textOf(value)}</code> : <span aria-hidden="true">••••••</span>}</span>
}

interface EditorProps extends SettingProps {
  readonly change: ReturnType<typeof useChange>
  /** The value at the time when the editor was opened. */
  readonly before: unknown
}

function Editor({ name, list, refused, change: { value, edited, busy, save }, before }: EditorProps) {
  const startsEmpty = list.isHidden(name, value)
  const cancel = () => set(edited, undefined)
  const form = useRef<HTMLFormElement>(null)
  const kind = useSignal<Kind>(kindOf(before))
  /** The entered text; `undefined` until the user enters something, because an empty string is a value. */
  const typed = useSignal(startsEmpty ? undefined : textOf(before))
  const problem = useSignal('')
  useEffect(() => form.current?.querySelector<HTMLElement>('.new')?.focus(), [])
  const submit = () => {
    if (busy.value || refused !== undefined || typed.value === undefined) return
    const read = readTyped(kind.value, typed.value, before)
    problem.value = read.ok ? '' : read.message
    if (read.ok) void save(read.value, before)
  }
  return (
    <form ref={form} class="wide edit" onSubmit={submits(submit)} onKeyDown={({ key }) => key === 'Escape' && cancel()}>
      {startsEmpty && <p class="quiet">{text.setting.anew}</p>}
      <Field name={name} kind={kind.value} typed={typed} />
      <p class="bad-text" role="alert">
        {problem.value}
      </p>
      <div class="buttons">
        <Action
          label={text.setting.save}
          tone="primary"
          busy={busy.value}
          refused={refused ?? (typed.value === undefined ? text.setting.untyped : undefined)}
          act={submit}
        />
        <Action label={terms.cancel} act={cancel} />
        <label class="check">
          {text.setting.kind}
          <Select
            options={KINDS}
            chosen={kind.value}
            choose={(one) => set(kind, one)}
            nameOf={(one) => text.setting.kinds[one]}
          />
        </label>
      </div>
    </form>
  )
}

function Field({ name, kind, typed }: { name: string; kind: Kind; typed: Signal<string | undefined> }) {
  const value = typed.value ?? ''
  const named = { class: 'new', 'aria-label': text.setting.value({ name }) }
  if (kind === 'boolean')
    return <Select {...named} options={['', 'true', 'false']} chosen={value} choose={(one) => set(typed, one)} />
  const onInput = ({ currentTarget }: { currentTarget: { value: string } }) => set(typed, currentTarget.value)
  const shared = { ...named, value, onInput }
  if (kind === 'number') return <input {...shared} inputMode="decimal" />
  return <textarea {...shared} rows={Math.min(MAX_LINES, value.split('\n').length)} />
}
