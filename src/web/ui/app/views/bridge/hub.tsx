import { useSignal } from '@preact/signals'
import { isCrashed } from '../../../../../contract/classify.ts'
import { COMMANDS } from '../../../../../contract/commands.ts'
import type { HubHealth } from '../../../../../contract/crash.ts'
import { commandKey } from '../../../../../contract/permissions.ts'
import type { Ended } from '../../api.ts'
import { act, commandName, refusal } from '../../commands.ts'
import type { HubEntry } from '../../live/store.ts'
import { Action, Badge, Card, Facts, set, submits, Time, useRequest } from '../../parts/controls.tsx'
import { usePage } from '../../session.ts'
import { defineStrings, formatBytes, formatCelsius, formatCount, formatTime, inLanguage, terms } from '../../terms.ts'

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
  speechHint: 'Text for the hub to speak',
  health: {
    title: 'Health',
    asOf: 'Health, as of {time}',
    free: '{free} free of {total}',
    load: 'Load',
    temperature: 'Temperature',
    storage: 'Storage',
    booted: 'Running since',
    backup: 'Last backup',
    update: 'Available firmware',
    power: 'Power supply',
    weak: 'too weak',
    speed: 'Speed',
    throttled: 'reduced to protect the hub',
    lacking: 'Give the API key the permission homey.system.readonly to see memory, load and storage of the hub here.',
  },
})

type HubProps = { readonly hub: HubEntry }

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
  const { busy, run } = useRequest<Ended>()
  const refused = refusal(page, { hub }, 'speak')
  const speak = async () => {
    const spoken = words.value.trim()
    if (refused !== undefined || busy.value || spoken === '') return
    const { ok } = await run(() => act({ hub }, 'speak', { text: spoken }))
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

/** The permission to read the hub's health, as spelled in `permissions` of a hub's info. */
const NEEDED = 'hub.system.readonly'

function Health({ hub }: HubProps) {
  const health = hub.health.value
  if (health === undefined) {
    const granted = hub.info.value?.permissions ?? []
    const isPermitted = granted.some((scope) => scope === NEEDED || NEEDED.startsWith(`${scope}.`))
    // With the permission, show no message, because the health arrives a few seconds after the hub is online.
    return hub.state.value !== 'online' || isPermitted ? null : <p class="quiet">{text.health.lacking}</p>
  }
  const away = hub.state.value === 'online' ? undefined : hub.since.value
  return (
    <>
      <h3>{away === undefined ? text.health.title : text.health.asOf({ time: formatTime(away) })}</h3>
      <HealthFacts health={health} />
    </>
  )
}

export function figuresOf(health: HubHealth): readonly (readonly [name: string, value: string | undefined])[] {
  const { load_1m: load, temperature_celsius: temperature, storage_free_bytes, storage_total_bytes } = health
  return [
    [text.health.load, load === null ? undefined : formatCount(load)],
    [text.health.temperature, temperature === null ? undefined : formatCelsius(temperature)],
    [text.health.storage, free(storage_free_bytes, storage_total_bytes)],
  ]
}

export function HealthFacts({ health }: { readonly health: HubHealth }) {
  const { booted_at: booted, last_backup_at: backup } = health
  return (
    <Facts
      rows={[
        [text.health.power, health.undervoltage ? <Badge tone="warn">{text.health.weak}</Badge> : undefined],
        [text.health.speed, health.throttled ? <Badge tone="warn">{text.health.throttled}</Badge> : undefined],
        [terms.columns.memory, free(health.memory_free_bytes, health.memory_total_bytes)],
        ...figuresOf(health),
        [text.health.booted, booted && <Time at={booted} />],
        [text.health.backup, backup && <Time at={backup} ago />],
        [text.health.update, health.firmware_update],
      ]}
    />
  )
}

function free(bytes: number | null, total: number | null): string | undefined {
  if (bytes === null || total === null) return undefined
  return text.health.free({ free: formatBytes(bytes), total: formatBytes(total) })
}
