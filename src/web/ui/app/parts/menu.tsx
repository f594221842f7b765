/** A menu below the button that opens it. There is one at a time, so that rows stay small. */
import { signal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Glyph, type GlyphName } from './icons.tsx'

export interface MenuItem {
  readonly label: string
  readonly glyph: GlyphName
  readonly danger?: boolean
  /** Why it cannot be chosen. */
  readonly refused?: string | undefined
  readonly choose: () => void
}

interface Menu {
  readonly label: string
  readonly items: readonly MenuItem[]
  readonly opener: HTMLElement
}

const opened = signal<Menu | undefined>(undefined)

export function openMenu(opener: HTMLElement, label: string, items: readonly MenuItem[]): void {
  opened.value = { opener, label, items }
}

export function MenuHost() {
  const menu = opened.value
  return menu === undefined ? null : <MenuList key={menu.label} {...menu} />
}

const MARGIN = 8
/** Pixels after which a list has been scrolled. */
const SCROLLED = 60

function MenuList({ label, items, opener }: Menu) {
  const list = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const { current } = list
    if (current === null) return
    current.showPopover()
    place(current, opener)
    current.querySelector('button')?.focus()
    const { top } = opener.getBoundingClientRect()
    const onScroll = () => {
      // Ignore the end of a scroll that began before.
      if (Math.abs(opener.getBoundingClientRect().top - top) > SCROLLED) current.hidePopover()
      else place(current, opener)
    }
    addEventListener('scroll', onScroll, { passive: true })
    return () => removeEventListener('scroll', onScroll)
  }, [])
  const close = () => list.current?.hidePopover()
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Tab') close()
    if (step === undefined) return
    event.preventDefault()
    const buttons = [...(list.current?.querySelectorAll('button') ?? [])]
    const at = document.activeElement instanceof HTMLButtonElement ? buttons.indexOf(document.activeElement) : -1
    buttons[(at + step + buttons.length) % buttons.length]?.focus()
  }
  return (
    <div
      ref={list}
      popover="auto"
      class="menu"
      role="menu"
      aria-label={label}
      tabIndex={-1}
      onKeyDown={onKeyDown}
      onToggle={(event) => {
        if (event.newState === 'closed') {
          opened.value = undefined
          if (document.activeElement === document.body) opener.focus()
        }
      }}
    >
      {items.map(({ label: text, glyph, danger, refused, choose }) => (
        <button
          key={text}
          type="button"
          role="menuitem"
          class={danger ? 'danger' : ''}
          aria-disabled={refused !== undefined}
          onClick={() => {
            if (refused !== undefined) return
            close()
            opener.focus()
            choose()
          }}
        >
          <Glyph name={glyph} />
          <span>
            {text}
            {refused !== undefined && <small>{refused}</small>}
          </span>
        </button>
      ))}
    </div>
  )
}

/** Below the opener, or above where there is no room. */
function place(menu: HTMLElement, opener: HTMLElement): void {
  const { bottom, top, right } = opener.getBoundingClientRect()
  const { width, height } = menu.getBoundingClientRect()
  const below = bottom + 4
  const fits = below + height + MARGIN <= innerHeight
  menu.style.top = `${Math.max(MARGIN, fits ? below : top - height - 4)}px`
  menu.style.left = `${Math.max(MARGIN, Math.min(right - width, innerWidth - width - MARGIN))}px`
}
