/** Everything about one app. */
import { isCrashed } from '../../../../../guardian/classify.ts'
import { confirmAndDo, offersOf } from '../../app-actions.ts'
import { actOn, type Door, nameOf, refusal } from '../../commands.ts'
import { formatBytes, formatCount, formatPercent } from '../../format.ts'
import type { AppEntry } from '../../live/entries.ts'
import { parseJson } from '../../live/payload.ts'
import { AppIcon } from '../../parts/app-icon.tsx'
import { Glyph } from '../../parts/glyph.tsx'
import { Action, Badge, Card, Copy, Facts, Json, Switch } from '../../parts/small.tsx'
import { Spark } from '../../parts/spark.tsx'
import { lastState, StateBadge, troubleOf, UpdateBadge } from '../../parts/state.tsx'
import { hrefOf } from '../../route.ts'
import { S } from '../../strings.ts'
import { Diagnostics } from './diagnostics.tsx'
import { Chronicle, Guardian } from './guardian.tsx'
import { History } from './history.tsx'
import { Settings } from './settings.tsx'
import { TopicList } from './topics.tsx'

export function AppPage({ door, hub, id }: { readonly door: Door; readonly hub: string; readonly id: string }) {
  const { store } = door
  const entry = store.app(hub, id)
  const owner = store.ownerElsewhere(hub)
  const missing = owner === undefined ? S.app.gone(id) : S.app.elsewhere(hub, owner)
  return (
    <div class="view">
      <a class="back" href={hrefOf({ at: 'apps' })}>
        <Glyph name="back" size={16} /> {S.apps.title}
      </a>
      {entry === undefined ? (
        <p class="empty">{store.complete.value ? missing : S.loading}</p>
      ) : (
        <Found key={entry.topic} entry={entry} door={door} />
      )}
    </div>
  )
}

export interface PartProps {
  readonly entry: AppEntry
  readonly door: Door
}

function Found({ entry, door }: PartProps) {
  return (
    <>
      <Head entry={entry} door={door} />
      <div class={door.store.isAway(entry.hub) ? 'cards away' : 'cards'}>
        <div class="column">
          <Details entry={entry} door={door} />
          <Guardian entry={entry} door={door} />
        </div>
        <div class="column">
          <Usage entry={entry} />
          <Chronicle entry={entry} door={door} />
          <History entry={entry} door={door} />
        </div>
        <Settings entry={entry} door={door} />
        <Diagnostics entry={entry} door={door} />
        <TopicList entry={entry} door={door} />
        <Further entry={entry} />
      </div>
    </>
  )
}

function Head({ entry, door }: PartProps) {
  const app = entry.app.value
  const name = nameOf(entry)
  const outcome = entry.outcome.value
  const running = entry.running.value
  const isAway = door.store.isAway(entry.hub)
  const trouble = troubleOf(entry, door.store)
  return (
    <header class="app-head">
      <AppIcon entry={entry} name={name} size={56} />
      <div class="title">
        <h1>{name}</h1>
        <p>
          <code>{entry.id}</code> <Copy text={entry.id} label={S.app.copyId} />
        </p>
        <p class="badges">
          <StateBadge entry={entry} store={door.store} />
          {trouble !== undefined && <Badge tone="bad">{S.events[trouble]}</Badge>}
          {isAway && <small>{lastState(app)}</small>}
          <span>{app.version ?? S.unknown}</span>
          <UpdateBadge app={app} />
        </p>
      </div>
      <div class="buttons">
        {offersOf(entry, door).map(({ command, label, glyph, danger, refused }) => (
          <Action
            key={command}
            label={label}
            glyph={glyph}
            tone={danger && 'danger'}
            busy={running?.command === command}
            refused={running?.command === command ? undefined : refused}
            act={() => void confirmAndDo(entry, command)}
          />
        ))}
      </div>
      {isCrashed(app) && (
        <div class="notice bad">
          <Glyph name="alert" />
          <span class="said">{app.crash_message ?? S.apps.noCrashMessage}</span>
        </div>
      )}
      {outcome?.ok === false && (
        <div class="notice bad">
          <Glyph name="alert" />
          <span>{outcome.text}</span>
        </div>
      )}
    </header>
  )
}

const yesNo = (value: boolean | null) => (value === null ? S.unknown : value ? S.yes : S.no)

function Details({ entry, door }: PartProps) {
  const app = entry.app.value
  const refused = refusal(door, { hub: entry.hub, app: entry.id }, 'autoupdate')
  const autoupdate = app.autoupdate === true
  return (
    <Card title={S.app.details}>
      <Facts
        rows={[
          [S.app.fields.hub, entry.hub],
          [S.app.fields.version, app.version],
          [
            S.app.fields.latest_version,
            app.latest_version ?? (app.update_available === null ? undefined : yesNo(app.update_available)),
          ],
          [S.app.fields.enabled, yesNo(app.enabled)],
          [S.app.fields.crash_count, app.crash_count === null ? undefined : formatCount(app.crash_count)],
          [
            S.app.fields.autoupdate,
            <Switch
              on={autoupdate}
              label={S.app.fields.autoupdate}
              disabled={refused !== undefined || entry.running.value !== undefined}
              title={refused}
              flip={() => void actOn(entry, 'autoupdate', autoupdate ? 'OFF' : 'ON')}
            />,
          ],
          [S.app.fields.channel, app.channel],
          [S.app.fields.origin, app.origin],
          [S.app.fields.author, app.author],
          [S.app.fields.sdk, app.sdk === null ? undefined : String(app.sdk)],
          [S.app.fields.compatibility, app.compatibility],
          [S.app.fields.has_settings, yesNo(app.has_settings)],
        ]}
      />
    </Card>
  )
}

function Usage({ entry }: { readonly entry: AppEntry }) {
  const { cpu_percent, memory_bytes, state } = entry.app.value
  if (entry.samples.every(([, percent, bytes]) => percent === null && bytes === null)) {
    return (
      <Card title={S.app.usage}>
        <p class="empty small">{state === 'running' ? S.app.noUsage : S.app.notRunning}</p>
      </Card>
    )
  }
  const cpu = cpu_percent === null ? S.none : formatPercent(cpu_percent)
  const memory = memory_bytes === null ? S.none : formatBytes(memory_bytes)
  return (
    <Card title={S.app.usage} aside={<small>{S.app.last15}</small>}>
      <div class="usage">
        <h3>
          {S.apps.columns.cpu} <strong>{cpu}</strong>
        </h3>
        <Spark samples={entry.samples} figure="cpu" width={420} height={72} label={S.app.cpuChart(cpu)} />
        <h3>
          {S.apps.columns.memory} <strong>{memory}</strong>
        </h3>
        <Spark samples={entry.samples} figure="memory" width={420} height={72} label={S.app.memoryChart(memory)} />
      </div>
    </Card>
  )
}

/** Topics with a part of the page of their own, or of which nobody but the bridge knows anything. */
const SHOWN_ELSEWHERE: ReadonlySet<string> = new Set(['appUpdate', 'guard', 'history', 'guardMemory'])

/** What other topics of the app hold, as they are. */
function Further({ entry }: { readonly entry: AppEntry }) {
  const further = [...entry.further.value].filter(([, { name }]) => !SHOWN_ELSEWHERE.has(name))
  return (
    <>
      {further.map(([topic, { name, payload }]) => (
        <Card key={topic} title={name}>
          <Json value={parseJson(payload)} />
        </Card>
      ))}
    </>
  )
}
