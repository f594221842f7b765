/** What else an app can be asked, on demand. */
import { useSignal } from '@preact/signals'
import { sendCommand } from '../../api.ts'
import type { AppCommand } from '../../commands.ts'
import { refusal } from '../../commands.ts'
import { confirm } from '../../parts/confirm.tsx'
import { Action, Card, Json } from '../../parts/small.tsx'
import { S } from '../../strings.ts'
import type { PartProps } from './app.tsx'

interface Probe {
  readonly command: AppCommand
  readonly payload?: string
  readonly label: string
  /** Asked before, as it does more than read. */
  readonly question?: { readonly title: string; readonly text: string }
}

const PROBES: readonly Probe[] = [
  { command: 'get', payload: '{"raw":true}', label: S.diagnostics.record },
  { command: 'get-locales', label: S.diagnostics.locales },
  { command: 'get-std', label: S.diagnostics.std, question: S.diagnostics.stdQuestion },
]

export function Diagnostics({ entry, door }: PartProps) {
  const target = { hub: entry.hub, app: entry.id }
  const busy = useSignal<AppCommand | undefined>(undefined)
  const answer = useSignal<{ readonly label: string; readonly ok: boolean; readonly value: unknown } | undefined>(
    undefined,
  )
  const ask = async ({ command, payload, label, question }: Probe) => {
    if (question !== undefined && (await confirm({ ...question, action: label })) === undefined) return
    busy.value = command
    const ended = await sendCommand(target, command, payload)
    busy.value = undefined
    answer.value = { label, ok: ended.ok, value: ended.ok ? ended.data : ended.error.message }
  }
  return (
    <Card title={S.diagnostics.title} wide>
      <div class="buttons">
        {PROBES.map((probe) => (
          <Action
            key={probe.command}
            label={probe.label}
            busy={busy.value === probe.command}
            refused={refusal(door, target, probe.command)}
            act={() => void ask(probe)}
          />
        ))}
      </div>
      <div aria-live="polite">
        {answer.value !== undefined && (
          <>
            <h3>{answer.value.label}</h3>
            {answer.value.ok ? (
              <Json value={answer.value.value ?? S.diagnostics.nothing} />
            ) : (
              <p class="bad-text">{String(answer.value.value)}</p>
            )}
          </>
        )}
      </div>
    </Card>
  )
}
