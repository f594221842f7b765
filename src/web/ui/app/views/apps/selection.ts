/** Which apps are selected, by their topics. */
import { signal } from '@preact/signals'

export const selected = signal<ReadonlySet<string>>(new Set())

export function toggleSelected(topic: string): void {
  const next = new Set(selected.value)
  if (!next.delete(topic)) next.add(topic)
  selected.value = next
}

export function clearSelected(): void {
  selected.value = new Set()
}
