/** Short notices in a corner, read out as they come. */
import { signal } from '@preact/signals'
import { S } from '../strings.ts'
import { Glyph } from './glyph.tsx'

interface Toast {
  readonly number: number
  readonly ok: boolean
  readonly text: string
}

const shown = signal<readonly Toast[]>([])
let count = 0
const MOST = 4
const OK_MS = 5_000
const FAILED_MS = 12_000

export function toast(ok: boolean, text: string): void {
  count += 1
  const number = count
  shown.value = [...shown.value, { number, ok, text }].slice(-MOST)
  setTimeout(() => dismiss(number), ok ? OK_MS : FAILED_MS)
}

function dismiss(number: number): void {
  shown.value = shown.value.filter((one) => one.number !== number)
}

export function Toasts() {
  return (
    <section class="toasts" aria-label={S.toasts} aria-live="polite">
      {shown.value.map(({ number, ok, text }) => (
        <div key={number} class={ok ? 'toast' : 'toast bad'} role={ok ? 'status' : 'alert'}>
          <Glyph name={ok ? 'check' : 'alert'} />
          <span>{text}</span>
          <button type="button" class="icon" aria-label={S.dismiss} onClick={() => dismiss(number)}>
            <Glyph name="close" size={14} />
          </button>
        </div>
      ))}
    </section>
  )
}
