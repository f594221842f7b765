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
const ALL_DRAWN = 100
/** Lines before and after those in view; also how far one scrolls until others are drawn. */
const AROUND = 5
/** What is drawn before anybody has looked. */
const FIRST = 30

/** @param tops where each line begins, in pixels from the top of the list, and where the last one ends */
export function useWindow(list: RefObject<HTMLElement | null>, tops: readonly number[]): ReadonlySignal<Range> {
  const count = tops.length - 1
  const range = useMemo(() => signal<Range>({ from: 0, to: FIRST }), [])
  if (count <= ALL_DRAWN) set(range, { from: 0, to: count })
  // A shorter list than before: the effect below looks where it is scrolled to.
  else if (range.peek().to > count) set(range, { from: 0, to: FIRST })
  useLayoutEffect(() => {
    if (count <= ALL_DRAWN) return
    let waiting = false
    const look = () => {
      waiting = false
      const above = -(list.current?.getBoundingClientRect().top ?? 0)
      const first = lineAt(tops, above)
      const last = lineAt(tops, above + innerHeight)
      const rounded = Math.floor(first / AROUND) * AROUND - AROUND
      set(range, { from: Math.max(0, rounded), to: Math.min(count, Math.ceil(last / AROUND) * AROUND + 2 * AROUND) })
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
  }, [tops])
  return range
}

/** The line at a height. */
function lineAt(tops: readonly number[], height: number): number {
  let [low, high] = [0, tops.length - 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((tops[middle + 1] ?? Number.POSITIVE_INFINITY) <= height) low = middle + 1
    else high = middle
  }
  return low
}

function set(range: { value: Range; peek(): Range }, next: Range): void {
  const now = range.peek()
  if (now.from !== next.from || now.to !== next.to) range.value = next
}
