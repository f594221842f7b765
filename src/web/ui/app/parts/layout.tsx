/** Cards and their content. */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { formatAgo, formatMoment, formatSecond, formatTime } from '../format.ts'
import { defineStrings } from '../terms.ts'
import { Action, Copy, useRequest } from './controls.tsx'
import { Glyph } from './icons.tsx'

/** A table head only for screen readers, for tables with self-explanatory columns. */
export function HiddenHead({ columns }: { readonly columns: Readonly<Record<string, string>> }) {
  return (
    <thead class="hidden">
      <tr>
        {Object.values(columns).map((column) => (
          <th key={column}>{column}</th>
        ))}
      </tr>
    </thead>
  )
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

/** A list of names and values; rows without a value are omitted. */
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

/** A table that scrolls within its card. Without `columns`, it has no head. */
export function Table(props: { label: string; children: ComponentChildren; columns?: readonly string[] }) {
  const { label, children, columns } = props
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and must be reachable by keyboard.
    <div class="scroll" tabIndex={0}>
      <table class="list" aria-label={label}>
        {columns !== undefined && (
          <thead>
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
    </div>
  )
}

/** A time. `ago`: as a relative time; `clock`: never with a date. */
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
  // biome-ignore lint/a11y/noNoninteractiveTabindex: it may scroll, and must be reachable by keyboard.
  return <pre tabIndex={0}>{textOf(value)}</pre>
}

const text = defineStrings('report', { copy: 'Copy: {title}', nothing: 'The hub returned nothing.' })

export type Answer =
  | { readonly ok: true; readonly value: unknown; readonly note?: string }
  | { readonly ok: false; readonly message: string }

export interface Request {
  readonly label: string
  readonly refused: string | undefined
  /** `undefined`: cancelled. */
  readonly ask: () => Promise<Answer | undefined>
}

/** `children`: the content before the answers. */
export function Report(props: {
  title: string
  hint: string
  requests: readonly Request[]
  children?: ComponentChildren
}) {
  const { title, hint, requests, children } = props
  const { busy, result, ask } = useRequest<{ readonly label: string; readonly answer: Answer | undefined }>()
  const chosen = useSignal('')
  const { label: shown, answer } = result.value ?? { label: '', answer: undefined }
  return (
    <Card
      title={title}
      wide
      aside={
        <div class="buttons">
          {answer?.ok && (
            <Copy text={textOf(answer.value)} label={text.copy({ title: requests.length > 1 ? shown : title })} />
          )}
          {requests.map(({ label, refused, ask: question }) => (
            <Action
              key={label}
              label={label}
              busy={busy.value && chosen.value === label}
              refused={refused}
              act={() => {
                chosen.value = label
                void ask(async () => ({ label, answer: await question() }))
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
                <Json value={answer.value ?? text.nothing} />
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

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2)
}
