/** What is asked for only now and then: the configuration, and the doctor. */
import { useSignal } from '@preact/signals'
import { api, type Result } from '../../api.ts'
import type { Door } from '../../commands.ts'
import { Action, Card, Copy, Json } from '../../parts/small.tsx'
import { S } from '../../strings.ts'

export function Reports({ door }: { readonly door: Door }) {
  const refused = door.channel.liveness.value === 'live' ? undefined : S.refused.stale
  return (
    <>
      <Report
        title={S.config.title}
        hint={S.config.hint}
        action={S.config.read}
        refused={refused}
        ask={api.config}
        note={(path) => (path === null ? S.config.noFile : S.config.file(path))}
      />
      <Report title={S.doctor.title} hint={S.doctor.hint} action={S.doctor.run} refused={refused} ask={api.doctor} />
    </>
  )
}

interface ReportProps {
  readonly title: string
  readonly hint: string
  readonly action: string
  readonly refused: string | undefined
  readonly ask: () => Promise<Result<{ readonly text: string; readonly path?: string | null }>>
  readonly note?: (path: string | null) => string
}

function Report({ title, hint, action, refused, ask, note }: ReportProps) {
  const busy = useSignal(false)
  const result = useSignal<Awaited<ReturnType<ReportProps['ask']>> | undefined>(undefined)
  const run = async () => {
    busy.value = true
    result.value = await ask()
    busy.value = false
  }
  const found = result.value
  return (
    <Card
      title={title}
      wide
      aside={
        <div class="buttons">
          {found?.ok && <Copy text={found.value.text} label={S.copyReport(title)} />}
          <Action label={action} busy={busy.value} refused={refused} act={() => void run()} />
        </div>
      }
    >
      <div aria-live="polite">
        {found === undefined ? (
          <p class="empty small">{hint}</p>
        ) : found.ok ? (
          <>
            {note !== undefined && <p class="small quiet">{note(found.value.path ?? null)}</p>}
            <Json value={found.value.text} />
          </>
        ) : (
          <p class="bad-text">{found.message}</p>
        )}
      </div>
    </Card>
  )
}
