import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { defineStrings, terms } from '../terms.ts'
import { Glyph, type GlyphName } from './icons.tsx'

export interface Listed {
  readonly name: string
  /** Text that is shown on the same line as the name. */
  readonly about?: string | undefined
  /** Text from another source, such as a changelog, that is shown on a separate line. */
  readonly note?: string | undefined
}

export interface Question {
  readonly title: string
  readonly text: string
  readonly action: string
  readonly danger?: boolean
  readonly list?: readonly Listed[]
  /** The label of a checkbox, which is initially off. */
  readonly option?: string
}

export type Confirmation = { readonly option: boolean }

type OpenQuestion = Question & { readonly answer: (answer: Confirmation | undefined) => void }

const current = signal<OpenQuestion | undefined>(undefined)

/** Shows a dialog. Resolves to `undefined` if the dialog is cancelled or replaced. */
export function confirm(question: Question): Promise<Confirmation | undefined> {
  return new Promise((resolve) => {
    current.value?.answer(undefined)
    const answer = (given: Confirmation | undefined) => {
      current.value = undefined
      resolve(given)
    }
    current.value = { ...question, answer }
  })
}

export function ConfirmDialog() {
  const question = current.value
  return question === undefined ? null : <Dialog key={question.title + question.text} {...question} />
}

interface ModalProps {
  readonly title: string
  /** @param value value of the button that closed the dialog; empty if cancelled */
  readonly onClose: (value: string) => void
  readonly children: ComponentChildren
}

/** Uses the browser's own dialog, which keeps the focus inside and restores it when the dialog closes. */
export function Modal({ title, onClose, children }: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const close = () => dialog.current?.close()
    dialog.current?.showModal()
    // The dialog belongs to the view in which it was opened.
    addEventListener('hashchange', close)
    return () => removeEventListener('hashchange', close)
  }, [])
  return (
    <dialog ref={dialog} class="confirm" aria-label={title} onClose={() => onClose(dialog.current?.returnValue ?? '')}>
      <form method="dialog">
        <h2>{title}</h2>
        {children}
      </form>
    </dialog>
  )
}

const CONFIRMED = 'confirmed'

function Dialog({ title, text, action, danger, list, option, answer }: OpenQuestion) {
  const chosen = useRef<HTMLInputElement>(null)
  const onClose = (value: string) =>
    answer(value === CONFIRMED ? { option: chosen.current?.checked ?? false } : undefined)
  return (
    <Modal title={title} onClose={onClose}>
      <p>{text}</p>
      {list !== undefined && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: users must be able to scroll this element by keyboard.
        <ul tabIndex={0}>
          {list.map(({ name, about, note }, i) => (
            <li key={`${i} ${name}`}>
              <bdi>{name}</bdi> <span class="quiet">{about}</span>
              {note !== undefined && (
                <div class="said" dir="auto">
                  {note}
                </div>
              )}
            </li>
          ))}
        </ul>
      )}
      {option !== undefined && (
        <label class="check">
          <input ref={chosen} type="checkbox" /> {option}
        </label>
      )}
      <div class="buttons">
        <button type="button" onClick={({ currentTarget }) => currentTarget.closest('dialog')?.close()}>
          {terms.cancel}
        </button>
        <button type="submit" value={CONFIRMED} class={danger ? 'danger' : 'primary'}>
          {action}
        </button>
      </div>
    </Modal>
  )
}

export interface MenuItem {
  readonly label: string
  readonly glyph: GlyphName
  readonly danger?: boolean
  readonly checked?: boolean
  /** Why the item cannot be chosen. */
  readonly refused?: string | undefined
  readonly act: () => void
}

type Menu = { readonly label: string; readonly items: readonly MenuItem[]; readonly opener: HTMLElement }

/** The open menu. All rows share one menu, so that each row has fewer elements. */
const opened = signal<Menu | undefined>(undefined)

export function openMenu(opener: HTMLElement, label: string, items: readonly MenuItem[]): void {
  opened.value = { opener, label, items }
}

export function MenuHost() {
  const menu = opened.value
  return menu === undefined ? null : <MenuList key={menu.label} {...menu} />
}

const roleOf = (checked: boolean | undefined) =>
  ({ role: checked === undefined ? 'menuitem' : 'menuitemradio', 'aria-checked': checked }) as const

const MARGIN = 8
/** The menu closes if its opener moves by more than this number of pixels. */
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
      // Follow short scrolls, because a scroll that began before the menu opened may still be ending.
      if (Math.abs(opener.getBoundingClientRect().top - top) > SCROLLED) current.hidePopover()
      else place(current, opener)
    }
    addEventListener('scroll', onScroll, { passive: true })
    // The opener disappears with its app.
    const removals = new MutationObserver(() => opener.isConnected || current.hidePopover())
    removals.observe(document.body, { childList: true, subtree: true })
    return () => {
      removeEventListener('scroll', onScroll)
      removals.disconnect()
    }
  }, [])
  const close = () => list.current?.hidePopover()
  const onKeyDown = (event: KeyboardEvent) => {
    const buttons = [...(list.current?.querySelectorAll('button') ?? [])]
    const at = buttons.findIndex((button) => button.matches(':focus'))
    const to = { ArrowDown: (at + 1) % buttons.length, ArrowUp: at - 1, Home: 0, End: -1 }[event.key]
    if (event.key === 'Tab') close()
    if (to === undefined) return
    event.preventDefault()
    buttons.at(to)?.focus()
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
      {items.map(({ label: text, glyph, danger, checked, refused, act }) => (
        <button
          key={text}
          type="button"
          {...roleOf(checked)}
          class={danger ? 'danger' : ''}
          aria-disabled={refused !== undefined}
          onClick={() => {
            if (refused !== undefined) return
            close()
            opener.focus()
            act()
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

/** Places the menu below the opener, or above it if there is not enough space. */
function place(menu: HTMLElement, opener: HTMLElement): void {
  const { bottom, top, right } = opener.getBoundingClientRect()
  const { width, height } = menu.getBoundingClientRect()
  const below = bottom + 4
  const fits = below + height + MARGIN <= innerHeight
  menu.style.top = `${Math.max(MARGIN, fits ? below : top - height - 4)}px`
  menu.style.left = `${Math.max(MARGIN, Math.min(right - width, innerWidth - width - MARGIN))}px`
}

const text = defineStrings('toasts', { title: 'Notifications', dismiss: 'Dismiss' })

const shown = signal<readonly { number: number; ok: boolean; message: string }[]>([])
let count = 0
const MAX_TOASTS = 4
const OK_MS = 5_000
const FAILED_MS = 12_000

export function toast(ok: boolean, message: string): void {
  count += 1
  const number = count
  shown.value = [...shown.value, { number, ok, message }].slice(-MAX_TOASTS)
  setTimeout(() => dismiss(number), ok ? OK_MS : FAILED_MS)
}

function dismiss(number: number): void {
  shown.value = shown.value.filter((one) => one.number !== number)
}

/** Shows notices, such as results of commands. Screen readers announce them. */
export function Toasts() {
  return (
    <section class="toasts" aria-label={text.title} aria-live="polite">
      {shown.value.map(({ number, ok, message }) => (
        <div key={number} class={ok ? 'toast ok' : 'toast bad'} role={ok ? 'status' : 'alert'}>
          <Glyph name={ok ? 'check' : 'alert'} />
          <span>{message}</span>
          <button type="button" class="icon" aria-label={text.dismiss} onClick={() => dismiss(number)}>
            <Glyph name="close" size={16} />
          </button>
        </div>
      ))}
    </section>
  )
}
