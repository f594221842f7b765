/** A hub: its state, and the permissions of its key. */
import { useSignal } from '@preact/signals'
import { isCrashed } from '../../../../../contract/classify.ts'
import { COMMANDS } from '../../../../../contract/commands.ts'
import { commandKey } from '../../../../../contract/permissions.ts'
import type { Ended } from '../../api.ts'
import { act, commandName, refusal } from '../../commands.ts'
import { formatCount } from '../../format.ts'
import type { HubProps } from '../../live/entries.ts'
import { inLanguage } from '../../messages.ts'
import { Action, Badge, set, submits, useAsked } from '../../parts/controls.tsx'
import { Card, Facts, Time } from '../../parts/layout.tsx'
import { usePage } from '../../session.ts'
import { defineStrings } from '../../strings.ts'
import { terms } from '../../terms.ts'
import { Health } from './health.tsx'

const text = defineStrings('hub', {
  title: 'Hub {name}',
  owner: 'Served by',
  host: 'Address',
  firmware: 'Firmware',
  id: 'Id',
  realtime: 'Updates arrive',
  realtimes: { connected: 'in real time', polling: 'by polling' },
  crashed: '{apps}, {crashed} crashed',
  permissions: 'API key permissions',
  allPermitted: 'Key and configuration permit every command.',
  refused: { one: '{count} command is unavailable', other: '{count} commands are unavailable' },
  speech: 'Speech',
  speechHint: 'Text that the hub says',
})

export function HubCard({ hub }: HubProps) {
  const page = usePage()
  const { name, since } = hub
  const [state, info] = [hub.state.value, hub.info.value]
  const { store } = page
  const apps = [...hub.apps.value.values()]
  const crashed = apps.filter(({ app }) => isCrashed(app.peek())).length
  const count = formatCount(apps.length)
  return (
    <Card
      title={text.title({ name })}
      aside={
        <Badge tone={state === 'online' ? 'ok' : 'bad'}>{state === undefined ? terms.unknown : terms[state]}</Badge>
      }
    >
      <Facts
        rows={[
          [text.owner, info?.owner],
          [terms.since, since.value && <Time at={since.value} ago />],
          [terms.reason, store.reasonOf(hub)],
          [text.host, store.bridgeInfo.value?.hubs[name]?.url_host],
          [text.firmware, info?.firmware],
          [text.id, info?.id && <code>{info.id}</code>],
          [text.realtime, info && text.realtimes[info.realtime]],
          [terms.views.apps, crashed === 0 ? count : text.crashed({ apps: count, crashed })],
          [text.permissions, info?.permissions.join(', ')],
        ]}
      />
      <Health hub={hub} />
      <div class="buttons">
        <Action
          label={commandName('refresh')}
          glyph="restart"
          refused={refusal(page, { hub: name }, 'refresh')}
          act={() => void act({ hub: name }, 'refresh')}
        />
      </div>
      <Speech hub={hub} />
      <Refused hub={hub} />
    </Card>
  )
}

function Speech({ hub: { name: hub } }: HubProps) {
  const page = usePage()
  const words = useSignal('')
  const { busy, ask } = useAsked<Ended>()
  const refused = refusal(page, { hub }, 'speak')
  const speak = async () => {
    const said = words.value.trim()
    if (refused !== undefined || busy.value || said === '') return
    const { ok } = await ask(() => act({ hub }, 'speak', { text: said }))
    if (ok) words.value = ''
  }
  return (
    <form class="speech" onSubmit={submits(speak)}>
      <label class="field">
        <span>{text.speech}</span>
        <input
          value={words.value}
          placeholder={refused ?? text.speechHint}
          disabled={refused !== undefined}
          onInput={({ currentTarget }) => set(words, currentTarget.value)}
        />
      </label>
      <Action label={commandName('speak')} busy={busy.value} refused={refused} act={() => void speak()} />
    </form>
  )
}

/** What is not possible with this hub, and what would make it possible. */
function Refused({ hub: { name } }: HubProps) {
  const refused = usePage().store.refusals.value[name] ?? {}
  const rows = COMMANDS.filter((command) => !command.argument && command.target !== 'bridge').flatMap((command) => {
    const why = refused[commandKey(command)]
    return why === undefined ? [] : [{ key: commandKey(command), why, doc: command.doc }]
  })
  if (rows.length === 0) return <p class="quiet">{text.allPermitted}</p>
  return (
    <details>
      <summary>{text.refused({ count: rows.length })}</summary>
      <ul class="lines">
        {rows.map(({ key, why, doc }) => (
          <li key={key}>
            <code class="key" title={doc} lang="en">
              {key}
            </code>
            <span>{inLanguage(why)}</span>
          </li>
        ))}
      </ul>
    </details>
  )
}
