/** What is asked for on demand only, and shown below the button. */
import { useSignal } from '@preact/signals'
import { defineStrings } from '../strings.ts'
import { Action, Copy, useAsked } from './controls.tsx'
import { Card, Json } from './layout.tsx'

const text = defineStrings('report', { copy: 'Copy: {title}', nothing: 'The hub returned nothing.' })

export type Answer =
  | { readonly ok: true; readonly value: unknown; readonly note?: string }
  | { readonly ok: false; readonly message: string }

export interface Request {
  readonly label: string
  readonly refused: string | undefined
  /** `undefined`: rather not. */
  readonly ask: () => Promise<Answer | undefined>
}

interface ReportProps {
  readonly title: string
  readonly hint: string
  readonly requests: readonly Request[]
}

export function Report({ title, hint, requests }: ReportProps) {
  const { busy, result, ask } = useAsked<{ readonly label: string; readonly answer: Answer | undefined }>()
  const asked = useSignal('')
  const { label: shown, answer } = result.value ?? { label: '', answer: undefined }
  return (
    <Card
      title={title}
      wide
      aside={
        <div class="buttons">
          {answer?.ok && (
            <Copy text={textOf(answer.value)} label={text.copy({ title: requests.length > 1 ? shown : title })} />
          )}
          {requests.map(({ label, refused, ask: question }) => (
            <Action
              key={label}
              label={label}
              busy={busy.value && asked.value === label}
              refused={refused}
              act={() => {
                asked.value = label
                void ask(async () => ({ label, answer: await question() }))
              }}
            />
          ))}
        </div>
      }
    >
      <div aria-live="polite">
        {answer === undefined ? (
          <p class="empty small">{hint}</p>
        ) : (
          <>
            {requests.length > 1 && <h3>{shown}</h3>}
            {answer.ok ? (
              <>
                {answer.note !== undefined && <p class="quiet">{answer.note}</p>}
                <Json value={answer.value ?? text.nothing} />
              </>
            ) : (
              <p class="bad-text">{answer.message}</p>
            )}
          </>
        )}
      </div>
    </Card>
  )
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2)
}
