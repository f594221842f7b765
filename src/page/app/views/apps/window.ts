/** Which lines of a long list are drawn: those in view, and some around them. */
import { type ReadonlySignal, signal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useLayoutEffect, useMemo } from 'preact/hooks'

export interface Range {
  readonly from: number
  /** The first one that is not drawn any more. */
  readonly to: number
}

/** Up to so many are all drawn: the browser's own search finds them then. */
const ALL_DRAWN = 150
/** Lines before and after those in view; also how far one scrolls until others are drawn. */
const AROUND = 12

/** Lines have one height each, so that their place follows from their number. */
export function useWindow(list: RefObject<HTMLElement | null>, count: number, height: number): ReadonlySignal<Range> {
  const range = useMemo(() => signal<Range>({ from: 0, to: 0 }), [])
  if (count <= ALL_DRAWN) setRange(range, { from: 0, to: count })
  else if (range.peek().to === 0 || range.peek().to > count || range.peek().from >= count) {
    setRange(range, { from: 0, to: Math.min(count, 4 * AROUND) })
  }
  useLayoutEffect(() => {
    if (count <= ALL_DRAWN) return
    let waiting = false
    const look = () => {
      waiting = false
      const top = list.current?.getBoundingClientRect().top ?? 0
      const first = Math.floor(-top / height / AROUND) * AROUND - AROUND
      const lines = (Math.ceil(innerHeight / height / AROUND) + 3) * AROUND
      const from = Math.max(0, Math.min(first, count - lines))
      setRange(range, { from, to: Math.min(count, from + lines) })
    }
    const later = () => {
      if (waiting) return
      waiting = true
      requestAnimationFrame(look)
    }
    look()
    addEventListener('scroll', later, { passive: true })
    addEventListener('resize', later)
    return () => {
      removeEventListener('scroll', later)
      removeEventListener('resize', later)
    }
  }, [count, height])
  return range
}

function setRange(range: { value: Range; peek(): Range }, next: Range): void {
  const now = range.peek()
  if (now.from !== next.from || now.to !== next.to) range.value = next
}
