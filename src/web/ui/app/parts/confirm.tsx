/** Asks before what hurts. The browser's own dialog keeps the focus inside, and gives it back. */
import { signal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { terms } from '../terms.ts'

export interface Question {
  readonly title: string
  readonly text: string
  /** What the button that does it says. */
  readonly action: string
  readonly danger?: boolean
  /** A further choice, off at first. */
  readonly option?: string
}

interface Asked extends Question {
  readonly answer: (answer: Confirmation | undefined) => void
}

export interface Confirmation {
  readonly option: boolean
}

const asked = signal<Asked | undefined>(undefined)

/** `undefined`: rather not. */
export function confirm(question: Question): Promise<Confirmation | undefined> {
  return new Promise((resolve) => {
    asked.value?.answer(undefined)
    const answer = (given: Confirmation | undefined) => {
      asked.value = undefined
      resolve(given)
    }
    asked.value = { ...question, answer }
  })
}

export function ConfirmDialog() {
  const question = asked.value
  return question === undefined ? null : <Dialog key={question.title + question.text} {...question} />
}

function Dialog({ title, text, action, danger, option, answer }: Asked) {
  const dialog = useRef<HTMLDialogElement>(null)
  const chosen = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} class="confirm" aria-labelledby="confirm-title" onClose={() => answer(undefined)}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault()
          answer({ option: chosen.current?.checked ?? false })
        }}
      >
        <h2 id="confirm-title">{title}</h2>
        <p>{text}</p>
        {option !== undefined && (
          <label class="check">
            <input ref={chosen} type="checkbox" /> {option}
          </label>
        )}
        <div class="buttons">
          <button type="button" onClick={() => dialog.current?.close()}>
            {terms.cancel}
          </button>
          <button type="submit" class={danger ? 'danger' : 'primary'}>
            {action}
          </button>
        </div>
      </form>
    </dialog>
  )
}
