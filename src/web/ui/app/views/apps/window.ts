/** Selects the lines of a long list to draw: the visible ones and some around them. */
import { type ReadonlySignal, signal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useLayoutEffect, useMemo } from 'preact/hooks'
import { compact } from '../../preferences.ts'
import type { Item } from './order.ts'

interface Range {
  readonly from: number
  /** The first line after the drawn ones. */
  readonly to: number
  /** Height of the lines before and after the drawn ones, in pixels. */
  readonly above: number
  readonly below: number
}

/** Lists up to this length are drawn completely, so that the browser's search works. */
const ALL_DRAWN = 100
/** How many lines are drawn before and after the visible ones; also how far to scroll until the range changes. */
const AROUND = 5
/** The lines drawn before the position is known. */
const FIRST: Range = { from: 0, to: 30, above: 0, below: 0 }

/** @param body the body of the table, whose style defines the height of each kind of line */
export function useWindow(body: RefObject<HTMLElement | null>, items: readonly Item[]): ReadonlySignal<Range> {
  const count = items.length
  const range = useMemo(() => signal(FIRST), [])
  if (count <= ALL_DRAWN) set(range, { from: 0, to: count, above: 0, below: 0 })
  // The list became shorter: start over; the effect below reads the scroll position.
  else if (range.peek().to > count) set(range, FIRST)
  useLayoutEffect(() => {
    const list = body.current
    if (count <= ALL_DRAWN || list === null) return
    let tops = topsOf(items, list)
    let waiting = false
    const look = () => {
      waiting = false
      const above = -list.getBoundingClientRect().top
      const first = Math.floor(lineAt(tops, above) / AROUND) * AROUND
      const last = Math.ceil(lineAt(tops, above + innerHeight) / AROUND) * AROUND
      const [from, to] = [Math.max(0, first - AROUND), Math.min(count, last + 2 * AROUND)]
      set(range, { from, to, above: tops[from] ?? 0, below: (tops[count] ?? 0) - (tops[to] ?? 0) })
    }
    const later = () => {
      if (waiting) return
      waiting = true
      requestAnimationFrame(look)
    }
    // The height of a line depends on the width of the list.
    const resized = () => {
      tops = topsOf(items, list)
      later()
    }
    look()
    addEventListener('scroll', later, { passive: true })
    addEventListener('resize', resized)
    return () => {
      removeEventListener('scroll', later)
      removeEventListener('resize', resized)
    }
  }, [items, compact.value])
  return range
}

/** The top of each line, in pixels from the top of the list, and the end of the last one. */
function topsOf(items: readonly Item[], list: HTMLElement): number[] {
  const style = getComputedStyle(list)
  const height = (kind: Item['kind']) => Number.parseFloat(style.getPropertyValue(`--${kind}-height`))
  const heights = { app: height('app'), hub: height('hub') }
  const tops = [0]
  for (const [i, { kind }] of items.entries()) tops.push((tops[i] ?? 0) + heights[kind])
  return tops
}

/** The index of the line at a height. */
function lineAt(tops: readonly number[], height: number): number {
  const line = tops.findLastIndex((top) => top <= height)
  return Math.max(0, line)
}

function set(range: { value: Range; peek(): Range }, next: Range): void {
  const now = range.peek()
  const isSame = now.from === next.from && now.to === next.to && now.above === next.above && now.below === next.below
  if (!isSame) range.value = next
}
