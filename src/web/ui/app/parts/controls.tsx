import { type ReadonlySignal, useSignal } from '@preact/signals'
import type { ButtonHTMLAttributes, ComponentChildren, SelectHTMLAttributes } from 'preact'
import { useEffect } from 'preact/hooks'
import { defineStrings, formatAgo, formatMoment, formatSecond, formatTime } from '../terms.ts'
import { Glyph, type GlyphName } from './icons.tsx'
import { toast } from './overlays.tsx'

const text = defineStrings('controls', { copyFailed: 'The browser did not allow copying.' })

export type Tone = 'ok' | 'warn' | 'bad' | 'quiet' | 'info'

export function Badge({ tone, children, title }: { tone: Tone; children: ComponentChildren; title?: string }) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  )
}

interface ButtonProps {
  readonly label: string
  /** Why the button cannot be used. The button stays focusable, so that keyboard users also learn the reason. */
  readonly refused?: string | undefined
  readonly busy?: boolean
  readonly act: (button: HTMLElement) => void
}

type Attributes = Omit<ButtonHTMLAttributes<HTMLButtonElement>, keyof ButtonProps | 'title' | 'onClick'>
type BaseProps = Attributes & Omit<ButtonProps, 'label'> & { readonly title?: string | undefined }

export function Button({ refused, busy = false, act, title, children, ...attributes }: BaseProps) {
  const isDisabled = busy || refused !== undefined
  return (
    <button
      type="button"
      {...attributes}
      aria-disabled={isDisabled}
      title={refused ?? title}
      onClick={({ currentTarget }) => isDisabled || act(currentTarget)}
    >
      {children}
    </button>
  )
}

/** A button with a label. Ignores unknown properties, so that a caller can spread a larger object. */
export function Action(props: ButtonProps & { glyph?: GlyphName; tone?: 'primary' | 'danger' | undefined }) {
  const { label, glyph, tone, refused, busy = false, act } = props
  return (
    <Button refused={refused} busy={busy} act={act} class={tone}>
      {busy ? <span class="spinner" aria-hidden="true" /> : glyph && <Glyph name={glyph} size={16} />}
      {label}
      {refused !== undefined && <span class="hidden"> ({refused})</span>}
    </Button>
  )
}

export function IconButton(
  props: ButtonProps & { glyph: GlyphName; size?: number; title?: string; pressed?: boolean; popup?: 'menu' },
) {
  const { label, glyph, size = 18, title = label, pressed, popup, ...rest } = props
  const name = rest.refused === undefined ? label : `${label} (${rest.refused})`
  return (
    <Button {...rest} class="icon" title={title} aria-label={name} aria-pressed={pressed} aria-haspopup={popup}>
      <Glyph name={glyph} size={size} />
    </Button>
  )
}

export type Changeable<T> = { value: T }

/** @param props.shortcut the key that focuses the field @param props.open opens the first match */
export function Search(props: { label: string; value: Changeable<string>; shortcut?: string; open?: () => void }) {
  const { label, value, shortcut, open } = props
  return (
    <label class="search">
      <Glyph name="search" size={16} />
      <span class="hidden">{label}</span>
      <input
        type="search"
        placeholder={label}
        value={value.value}
        onInput={({ currentTarget }) => set(value, currentTarget.value)}
        onKeyDown={({ key, isComposing, currentTarget }) => {
          if (key === 'Enter' && !isComposing && value.value.trim() !== '') open?.()
          if (key !== 'Escape') return
          value.value = ''
          currentTarget.blur()
        }}
      />
      <span class="shortcut" aria-hidden="true">
        {shortcut}
      </span>
    </label>
  )
}

interface ChipsProps<K extends string> {
  readonly label: string
  readonly options: readonly K[]
  readonly names: Readonly<Record<K, string>>
  readonly chosen: Changeable<K>
}

export function Chips<K extends string>({ label, options, names, chosen }: ChipsProps<K>) {
  return (
    <fieldset class="chips">
      <legend class="hidden">{label}</legend>
      {options.map((one) => (
        <button key={one} type="button" aria-pressed={chosen.value === one} onClick={() => set(chosen, one)}>
          {names[one]}
        </button>
      ))}
    </fieldset>
  )
}

type ListAttributes = Pick<SelectHTMLAttributes<HTMLSelectElement>, 'class' | 'title' | 'disabled' | 'aria-label'>

interface SelectProps<K extends string> extends ListAttributes {
  readonly options: readonly K[]
  readonly chosen: K
  readonly choose: (option: K) => void
  /** Returns the text of an option; default: the option itself. */
  readonly nameOf?: (option: K) => string
}

export function Select<K extends string>(props: SelectProps<K>) {
  const { options, chosen, choose, nameOf = (option) => option, ...attributes } = props
  const onChange = (value: string) => options.filter((option) => option === value).forEach(choose)
  return (
    <select
      {...attributes}
      value={chosen}
      onChange={({ currentTarget }) => {
        onChange(currentTarget.value)
        // Show the choice only when it has taken effect, because it may be refused.
        currentTarget.value = chosen
      }}
    >
      {options.map((one) => (
        <option key={one} value={one}>
          {nameOf(one)}
        </option>
      ))}
    </select>
  )
}

export function Copy({ text: copied, label }: { readonly text: string; readonly label: string }) {
  const done = useSignal(false)
  const copy = async () => {
    done.value = await copyText(copied)
    if (!done.value) toast(false, text.copyFailed)
    setTimeout(() => set(done, false), 1_500)
  }
  return <IconButton label={label} glyph={done.value ? 'check' : 'copy'} size={16} act={() => void copy()} />
}

/** Copies a text to the clipboard, also on plain HTTP, where browsers have no clipboard API. */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    return (await navigator.clipboard.writeText(text).catch(() => false)) !== false
  }
  const area = document.createElement('textarea')
  area.value = text
  document.body.append(area)
  area.select()
  const ok = document.execCommand('copy')
  area.remove()
  return ok
}

/** Sets a value without returning it, for use in event handlers. */
export function set<T>(to: Changeable<T>, value: T): void {
  to.value = value
}

/** Returns a handler for a form's submit event, which calls `act` instead of letting the browser send the form. */
export const submits = (act: () => unknown) => (event: Event) => {
  event.preventDefault()
  void act()
}

export function useRequest<T>() {
  const busy = useSignal(false)
  const result = useSignal<T | undefined>(undefined)
  const run = async (request: () => Promise<T>): Promise<T> => {
    busy.value = true
    const answer = await request()
    busy.value = false
    result.value = answer
    return answer
  }
  return { busy, result, run }
}

/** The current time in epoch milliseconds, updated every second. */
export function useNow(): ReadonlySignal<number> {
  const now = useSignal(Date.now())
  useEffect(() => {
    const timer = setInterval(() => set(now, Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [])
  return now
}

export function Card(props: { title: string; children: ComponentChildren; aside?: ComponentChildren; wide?: boolean }) {
  const { title, children, aside, wide = false } = props
  return (
    <section class={wide ? 'card wide' : 'card'} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  )
}

export function Facts({ rows }: { rows: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="lines">
      {rows
        .filter(([, value]) => value !== undefined && value !== null && value !== '')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}

type TableProps = { label: string; children: ComponentChildren; columns?: readonly string[]; head?: 'hidden' }

/** Without `columns`, the table has no head. With `head="hidden"`, only screen readers get the head. */
export function Table({ label, children, columns, head }: TableProps) {
  return (
    <table class="list" aria-label={label}>
      {columns !== undefined && (
        <thead class={head}>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
      )}
      <tbody>{children}</tbody>
    </table>
  )
}

export function ScrollTable(props: TableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: users must be able to scroll this element by keyboard.
    <div class="scroll" tabIndex={0}>
      <Table {...props} />
    </div>
  )
}

/** Shows a time. `ago` shows it relative to now. `clock` shows it without the date. */
export function Time({ at, ago = false, clock = false }: { at: number | string; ago?: boolean; clock?: boolean }) {
  const ms = typeof at === 'string' ? Date.parse(at) : at
  return (
    <time dateTime={new Date(ms).toISOString()} title={formatMoment(ms)}>
      {ago ? formatAgo(ms) : clock ? formatSecond(ms) : formatTime(ms)}
    </time>
  )
}

export function Alert({ children }: { readonly children: ComponentChildren }) {
  return (
    <div class="notice bad">
      <Glyph name="alert" />
      <div class="said">{children}</div>
    </div>
  )
}

export function Json({ value }: { readonly value: unknown }) {
  // biome-ignore lint/a11y/noNoninteractiveTabindex: users must be able to scroll this element by keyboard.
  return <pre tabIndex={0}>{textOf(value)}</pre>
}

const report = defineStrings('report', { copy: 'Copy: {title}', nothing: 'The hub returned nothing.' })

export type Answer =
  | { readonly ok: true; readonly value: unknown; readonly note?: string }
  | { readonly ok: false; readonly message: string }

interface Request {
  readonly label: string
  readonly refused: string | undefined
  /** Sends the request. Resolves to `undefined` if the user cancels. */
  readonly run: () => Promise<Answer | undefined>
}

export function Report(props: {
  title: string
  hint: string
  requests: readonly Request[]
  children?: ComponentChildren
}) {
  const { title, hint, requests, children } = props
  const { busy, result, run } = useRequest<{ readonly label: string; readonly answer: Answer | undefined }>()
  const chosen = useSignal('')
  const { label: shown, answer } = result.value ?? { label: '', answer: undefined }
  return (
    <Card
      title={title}
      wide
      aside={
        <div class="buttons">
          {answer?.ok && (
            <Copy text={textOf(answer.value)} label={report.copy({ title: requests.length > 1 ? shown : title })} />
          )}
          {requests.map(({ label, refused, run: send }) => (
            <Action
              key={label}
              label={label}
              busy={busy.value && chosen.value === label}
              refused={refused}
              act={() => {
                chosen.value = label
                void run(async () => ({ label, answer: await send() }))
              }}
            />
          ))}
        </div>
      }
    >
      {children}
      <div aria-live="polite">
        {answer === undefined ? (
          <p class="empty small">{hint}</p>
        ) : (
          <>
            {requests.length > 1 && <h3>{shown}</h3>}
            {answer.ok ? (
              <>
                {answer.note !== undefined && <p class="quiet">{answer.note}</p>}
                <Json value={answer.value ?? report.nothing} />
              </>
            ) : (
              <p class="bad-text">{answer.message}</p>
            )}
          </>
        )}
      </div>
    </Card>
  )
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2))
