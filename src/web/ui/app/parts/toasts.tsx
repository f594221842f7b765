/** Short notices in a corner, read out as they come. */
import { signal } from '@preact/signals'
import { defineStrings } from '../strings.ts'
import { Glyph } from './icons.tsx'

const text = defineStrings('toasts', { title: 'Notifications', dismiss: 'Dismiss' })

interface Toast {
  readonly number: number
  readonly ok: boolean
  readonly said: string
}

const shown = signal<readonly Toast[]>([])
let count = 0
const MOST = 4
const OK_MS = 5_000
const FAILED_MS = 12_000

export function toast(ok: boolean, said: string): void {
  count += 1
  const number = count
  shown.value = [...shown.value, { number, ok, said }].slice(-MOST)
  setTimeout(() => dismiss(number), ok ? OK_MS : FAILED_MS)
}

function dismiss(number: number): void {
  shown.value = shown.value.filter((one) => one.number !== number)
}

export function Toasts() {
  return (
    <section class="toasts" aria-label={text.title} aria-live="polite">
      {shown.value.map(({ number, ok, said }) => (
        <div key={number} class={ok ? 'toast ok' : 'toast bad'} role={ok ? 'status' : 'alert'}>
          <Glyph name={ok ? 'check' : 'alert'} />
          <span>{said}</span>
          <button type="button" class="icon" aria-label={text.dismiss} onClick={() => dismiss(number)}>
            <Glyph name="close" size={16} />
          </button>
        </div>
      ))}
    </section>
  )
}
