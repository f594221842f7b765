/** Keyboard shortcuts. They do nothing in text fields and dialogs, except ↓, which leaves the search field. */
import { signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { defineStrings, terms } from '../terms.ts'
import { set } from './controls.tsx'
import { Modal } from './overlays.tsx'

const text = defineStrings('keys', {
  close: 'Close',
  search: 'Search',
  down: 'Next app in the list',
  up: 'Previous app in the list',
  open: 'Open the app, or the first match of the search',
  escape: 'Close, or clear the search',
  help: 'Show the keyboard shortcuts',
})

export const SEARCH_KEY = '/'
const SEARCH = 'input[type=search]'
const TYPING = 'input:not([type=checkbox]), textarea, select'

/** The keys and their actions. `act` returns `false` if it did nothing. Without `act`, the browser handles the key. */
const KEYS: Readonly<Record<string, { name: string; does: keyof typeof text; act?: () => boolean }>> = {
  [SEARCH_KEY]: { name: SEARCH_KEY, does: 'search', act: () => focus(document.querySelector(SEARCH)) },
  ArrowDown: { name: '↓', does: 'down', act: () => step(1) },
  ArrowUp: { name: '↑', does: 'up', act: () => step(-1) },
  Enter: { name: 'Enter', does: 'open' },
  Escape: { name: 'Esc', does: 'escape' },
  '?': { name: '?', does: 'help', act: () => showKeys() },
}

const isShown = signal(false)

export function showKeys(): true {
  isShown.value = true
  return true
}

function focus(element: HTMLElement | null | undefined): boolean {
  element?.focus()
  return element != null
}

/** Focuses the next or previous app, or the first visible app. ↑ at the first app focuses the search field. */
function step(by: 1 | -1): boolean {
  const { activeElement: now } = document
  const row = now?.closest('tr.app')
  const isFree = row != null || now === document.body || now?.matches(`h1, main, ${SEARCH}`)
  if (!isFree) return false
  const links = [...document.querySelectorAll<HTMLElement>('tr.app td.c-name a')]
  const at = links.findIndex((link) => row?.contains(link))
  const isTop = at === 0 && document.querySelector('tr.app, tr.space')?.matches('.app')
  if (isTop && by === -1) return focus(document.querySelector(SEARCH))
  return focus(row == null ? links.find((link) => link.getBoundingClientRect().top >= 0) : links[at + by])
}

function onKey(event: KeyboardEvent): void {
  const { target, key, ctrlKey, metaKey, altKey, shiftKey, isComposing, defaultPrevented } = event
  const mayLeave = key === 'ArrowDown' && !shiftKey && !isComposing
  const isTyping = target instanceof HTMLElement && target.matches(TYPING) && !(mayLeave && target.matches(SEARCH))
  const isElsewhere = document.querySelector('dialog[open], [popover]:popover-open') !== null
  if (defaultPrevented || isTyping || isElsewhere || ctrlKey || metaKey || altKey || !Object.hasOwn(KEYS, key)) return
  if (KEYS[key]?.act?.()) event.preventDefault()
}

export function Keys() {
  useLayoutEffect(() => {
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  if (!isShown.value) return null
  return (
    <Modal title={terms.keys} onClose={() => set(isShown, false)}>
      <dl class="lines">
        {Object.values(KEYS).map(({ name, does }) => (
          <div key={does}>
            <dt>
              <kbd>{name}</kbd>
            </dt>
            <dd>{text[does]}</dd>
          </div>
        ))}
      </dl>
      <div class="buttons">
        <button type="submit" class="primary">
          {text.close}
        </button>
      </div>
    </Modal>
  )
}
