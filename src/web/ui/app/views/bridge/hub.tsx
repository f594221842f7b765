/** A hub: how it is, and what its key permits. */
import { useSignal } from '@preact/signals'
import { COMMANDS } from '../../../../../contract/commands.ts'
import { commandKey } from '../../../../../contract/permissions.ts'
import { isCrashed } from '../../../../../guardian/classify.ts'
import { act, type Door, refusal } from '../../commands.ts'
import { formatCount } from '../../format.ts'
import type { HubEntry } from '../../live/entries.ts'
import { Action, Badge, Card, Facts, Time } from '../../parts/small.tsx'
import { S } from '../../strings.ts'

interface HubProps {
  readonly hub: HubEntry
  readonly door: Door
}

export function HubCard({ hub, door }: HubProps) {
  const { name, state, info, apps, since } = hub
  const host = door.store.bridgeInfo.value?.hubs[name]?.url_host
  const told = info.value
  const crashed = [...apps.value.values()].filter(({ app }) => isCrashed(app.peek())).length
  return (
    <Card
      title={S.hub.title(name)}
      aside={
        <Badge tone={state.value === 'online' ? 'ok' : 'bad'}>
          {state.value === undefined ? S.unknown : S[state.value]}
        </Badge>
      }
    >
      <Facts
        rows={[
          [S.hub.owner, told?.owner],
          [S.hub.since, since.value === undefined ? undefined : <Time at={since.value} ago />],
          [S.hub.reason, door.store.reasonOf(hub)],
          [S.hub.host, host],
          [S.hub.firmware, told?.firmware],
          [S.hub.id, told?.id == null ? undefined : <code>{told.id}</code>],
          [S.hub.realtime, told && S.hub.realtimes[told.realtime]],
          [S.hub.apps, S.hub.appCount(formatCount(apps.value.size), crashed)],
          [S.hub.permissions, told?.permissions.join(', ') || undefined],
        ]}
      />
      <div class="buttons">
        <Action
          label={S.commands['refresh'] ?? ''}
          glyph="restart"
          refused={refusal(door, { hub: name }, 'refresh')}
          act={() => void act({ hub: name }, 'refresh')}
        />
      </div>
      <Speech hub={name} door={door} />
      <Refused hub={name} door={door} />
    </Card>
  )
}

function Speech({ hub, door }: { readonly hub: string; readonly door: Door }) {
  const text = useSignal('')
  const busy = useSignal(false)
  const refused = refusal(door, { hub }, 'speak')
  const speak = async () => {
    if (refused !== undefined || busy.value || text.value.trim() === '') return
    busy.value = true
    const { ok } = await act({ hub }, 'speak', { text: text.value.trim() })
    busy.value = false
    if (ok) text.value = ''
  }
  return (
    <form
      class="speech"
      onSubmit={(event) => {
        event.preventDefault()
        void speak()
      }}
    >
      <label>
        <span>{S.hub.speech}</span>
        <input
          value={text.value}
          placeholder={refused ?? S.hub.speechHint}
          disabled={refused !== undefined}
          onInput={({ currentTarget }) => {
            text.value = currentTarget.value
          }}
        />
      </label>
      <Action label={S.commands['speak'] ?? ''} busy={busy.value} refused={refused} act={() => void speak()} />
    </form>
  )
}

/** What is not possible with this hub, and what would make it so. */
function Refused({ hub, door }: { readonly hub: string; readonly door: Door }) {
  const refused = door.store.refusals.value[hub] ?? {}
  const rows = COMMANDS.filter((command) => !command.argument && command.target !== 'bridge').flatMap((command) => {
    const why = refused[commandKey(command)]
    return why === undefined ? [] : [{ key: commandKey(command), why, doc: command.doc }]
  })
  if (rows.length === 0) return <p class="small quiet">{S.hub.allPermitted}</p>
  return (
    <details>
      <summary>{S.hub.refused(rows.length)}</summary>
      <ul class="refused">
        {rows.map(({ key, why, doc }) => (
          <li key={key}>
            <code title={doc}>{key}</code>
            <span>{why}</span>
          </li>
        ))}
      </ul>
    </details>
  )
}
