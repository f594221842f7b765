/** Cards, and what stands in them. */
import type { ComponentChildren } from 'preact'
import { formatAgo, formatMoment, formatTime } from '../format.ts'
import { Glyph } from './icons.tsx'

interface CardProps {
  readonly title: string
  readonly children: ComponentChildren
  readonly aside?: ComponentChildren
  readonly wide?: boolean
}

export function Card({ title, children, aside, wide = false }: CardProps) {
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

interface TableProps {
  readonly label: string
  readonly children: ComponentChildren
  /** Without, it has no head. */
  readonly columns?: readonly string[]
}

/** A table that scrolls within its card. */
export function Table({ label, children, columns }: TableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and a keyboard must be able to.
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

export function Time({ at, ago = false }: { readonly at: number | string; readonly ago?: boolean }) {
  const ms = typeof at === 'string' ? Date.parse(at) : at
  return (
    <time dateTime={new Date(ms).toISOString()} title={formatMoment(ms)}>
      {ago ? formatAgo(ms) : formatTime(ms)}
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
  // biome-ignore lint/a11y/noNoninteractiveTabindex: it may scroll, and a keyboard must be able to.
  return <pre tabIndex={0}>{typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</pre>
}
