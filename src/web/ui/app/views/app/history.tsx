/** What happened to an app while the daemon has run. */
import { useComputed } from '@preact/signals'
import { Card } from '../../parts/small.tsx'
import { S } from '../../strings.ts'
import { HappeningRow } from '../happening.tsx'
import type { PartProps } from './app.tsx'

const MOST_SHOWN = 50

export function History({ entry, door: { store } }: PartProps) {
  const own = useComputed(() =>
    store.recent.value
      .filter(({ hub, app }) => app === entry.id && hub === entry.hub)
      .slice(-MOST_SHOWN)
      .toReversed(),
  ).value
  return (
    <Card title={S.app.history}>
      {own.length === 0 ? (
        <p class="empty small">{S.app.noHistory}</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and a keyboard must be able to.
        <div class="scroll" tabIndex={0}>
          <table class="happenings" aria-label={S.app.history}>
            <tbody>
              {own.map((one) => (
                <HappeningRow key={one.number} entry={one} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  )
}
