/** Small parts that many views share. */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { formatAgo, formatMoment, formatTime } from '../format.ts'
import { S } from '../strings.ts'
import { Glyph, type GlyphName } from './glyph.tsx'
import { toast } from './toasts.tsx'

export type Tone = 'ok' | 'warn' | 'bad' | 'quiet' | 'info'

export function Badge({ tone, children, title }: { tone: Tone; children: ComponentChildren; title?: string }) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  )
}

export function Switch(props: {
  readonly on: boolean
  readonly label: string
  readonly disabled?: boolean
  readonly title?: string | undefined
  readonly flip: () => void
}) {
  const { on, label, disabled = false, title, flip } = props
  return (
    <button
      type="button"
      role="switch"
      class="switch"
      aria-checked={on}
      aria-label={label}
      aria-disabled={disabled}
      title={title}
      onClick={() => {
        if (!disabled) flip()
      }}
    >
      <span />
    </button>
  )
}

/** A button that can be refused, and then says why. It keeps the focus, so that a keyboard gets to know it too. */
export function Action(props: {
  readonly label: string
  readonly glyph?: GlyphName
  readonly refused?: string | undefined
  readonly busy?: boolean
  readonly tone?: 'primary' | 'danger' | undefined
  readonly act: () => void
}) {
  const { label, glyph, refused, busy = false, tone = '', act } = props
  return (
    <button
      type="button"
      class={tone}
      aria-disabled={refused !== undefined || busy}
      title={refused}
      onClick={() => {
        if (refused === undefined && !busy) act()
      }}
    >
      {busy ? <span class="spinner" aria-hidden="true" /> : glyph && <Glyph name={glyph} size={16} />}
      {label}
      {refused !== undefined && <span class="hidden"> ({refused})</span>}
    </button>
  )
}

export function Card(props: {
  readonly title: string
  readonly children: ComponentChildren
  readonly aside?: ComponentChildren
  readonly wide?: boolean
}) {
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

/** Names and values; what has no value is left out. */
export function Facts({ rows }: { rows: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
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

export function Time({ at, ago = false }: { readonly at: number; readonly ago?: boolean }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={formatMoment(at)}>
      {ago ? formatAgo(at) : formatTime(at)}
    </time>
  )
}

export function Copy({ text, label }: { readonly text: string; readonly label: string }) {
  const copied = useSignal(false)
  const copy = async () => {
    const ok = await copyText(text)
    copied.value = ok
    if (!ok) toast(false, S.errors.copy)
    setTimeout(() => {
      copied.value = false
    }, 1_500)
  }
  return (
    <button type="button" class="icon" aria-label={label} title={label} onClick={() => void copy()}>
      <Glyph name={copied.value ? 'check' : 'copy'} size={15} />
    </button>
  )
}

/** The clipboard is there for secure origins only; a plain address in a home network is none. */
async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    return await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    )
  }
  const area = document.createElement('textarea')
  area.value = text
  document.body.append(area)
  area.select()
  const ok = document.execCommand('copy')
  area.remove()
  return ok
}

export function Json({ value }: { readonly value: unknown }) {
  // biome-ignore lint/a11y/noNoninteractiveTabindex: it may scroll, and a keyboard must be able to.
  return <pre tabIndex={0}>{typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</pre>
}
