/** The state of the bridge, its broker and its hubs. */
import { isCrashed } from '../../../../../contract/classify.ts'
import { LOG_LEVELS } from '../../../../../contract/log-levels.ts'
import type { FailureCode } from '../../../../../mqtt/types.ts'
import { api } from '../../api.ts'
import { act, commandName, refusal } from '../../commands.ts'
import { Badge, Select } from '../../parts/controls.tsx'
import { Alert, Card, Facts, Report, Time } from '../../parts/layout.tsx'
import { hrefOf } from '../../route.ts'
import { usePage } from '../../session.ts'
import { defineStrings, terms, textFor } from '../../terms.ts'
import { FleetCard } from './fleet.tsx'
import { HubCard } from './hub.tsx'

const text = defineStrings('bridge', {
  problems: 'Problems',
  well: 'all is well',
  ready: 'ready, with problems',
  notReady: 'not ready',
  contract: 'MQTT interface version',
  started: 'Started',
  baseTopic: 'Base topic',
  extensions: 'Extensions',
  apps: '{apps}, {crashed} crashed, {updates}',
  updates: { one: '{count} update available', other: '{count} updates available' },
  showLog: 'Show the log',
  discovery: 'Home Assistant discovery',
  discoveryOff: 'off, or nothing published yet',
  discoveryOn: 'published under {prefixes}',
  brokerStates: { connecting: 'connecting', connected: 'connected', waiting: 'waiting to connect', stopped: 'stopped' },
  protocol: 'Protocol',
  probe: 'Publishing and reading back',
  probes: { ok: 'works', denied: 'denied by the access rules of the broker', unknown: 'not tried yet' },
  probeAway: 'there is no connection',
  published: 'Published state',
  configuration: 'Configuration',
  configurationHint: 'The configuration in use. Secrets are masked.',
  show: 'Show',
  fromFile: 'Read from {path}, the environment and the defaults.',
  noFile: 'Read from the environment and the defaults; there is no file.',
  doctor: 'Doctor',
  doctorHint: 'Checks the hubs, the broker and the configuration, and shows a fix for each problem.',
  check: 'Run the checks',
})

export function BridgePage() {
  const { store } = usePage()
  return (
    <div class="view">
      <h1 class="hidden">{terms.views.bridge}</h1>
      <Problems />
      <div class="cards">
        <BridgeCard />
        <BrokerCard />
        <FleetCard />
        {store.own.value.map((hub) => (
          <HubCard key={hub.name} hub={hub} />
        ))}
        <Reports />
      </div>
    </div>
  )
}

function Problems() {
  const { store } = usePage()
  const problems = store.health.value?.problems ?? []
  if (problems.length === 0) return null
  return (
    <ul class="problems" aria-label={text.problems}>
      {problems.map((problem) => (
        <li key={problem}>
          <Alert>
            <span lang="en">{problem}</span>
          </Alert>
        </li>
      ))}
    </ul>
  )
}

function BridgeCard() {
  const { store, session } = usePage()
  const info = store.bridgeInfo.value
  const health = store.health.value
  const startedAt = info?.started_at ?? health?.started_at
  const prefixes = store.discovery.value?.prefixes.join(', ') || undefined
  return (
    <Card title={terms.views.bridge} aside={health && <HealthBadge {...health} />}>
      <Facts
        rows={[
          [terms.columns.version, info?.version ?? session.version],
          [text.contract, info?.contract],
          [text.started, startedAt && <Time at={startedAt} ago />],
          [text.baseTopic, <code>{session.base_topic}</code>],
          [terms.views.apps, <Counts />],
          [text.extensions, info?.extensions.join(', ')],
          [text.discovery, prefixes === undefined ? text.discoveryOff : text.discoveryOn({ prefixes })],
          [commandName('log-level'), <LogLevel />],
          [terms.views.log, <a href={hrefOf({ at: 'log' })}>{text.showLog}</a>],
        ]}
      />
    </Card>
  )
}

function HealthBadge({ ready, problems }: { readonly ready: boolean; readonly problems: readonly string[] }) {
  if (!ready) return <Badge tone="warn">{text.notReady}</Badge>
  return problems.length === 0 ? <Badge tone="ok">{text.well}</Badge> : <Badge tone="warn">{text.ready}</Badge>
}

/** Updated only now and then, because the counts need not always be current. */
function Counts() {
  const { store } = usePage()
  const apps = store.own.value.flatMap((hub) => [...hub.apps.value.values()].map(({ app }) => app.peek()))
  const crashed = apps.filter(isCrashed).length
  const updates = text.updates({ count: apps.filter(({ update_available }) => update_available === true).length })
  // Update with each report.
  void store.health.value
  void store.recent.value
  return <>{text.apps({ apps: apps.length, crashed, updates })}</>
}

function LogLevel() {
  const page = usePage()
  const refused = refusal(page, {}, 'log-level')
  return (
    <Select
      aria-label={commandName('log-level')}
      title={refused}
      disabled={refused !== undefined}
      options={LOG_LEVELS}
      chosen={page.store.logLevel.value}
      choose={(one) => void act({}, 'log-level', one)}
    />
  )
}

function BrokerCard() {
  const { store } = usePage()
  const health = store.health.value
  if (health === undefined) return null
  const { state, protocol, reason, probe } = health.mqtt
  const reasons: Readonly<Record<FailureCode, string>> = terms.brokerReasons
  return (
    <Card
      title={terms.broker}
      aside={<Badge tone={state === 'connected' ? 'ok' : 'bad'}>{text.brokerStates[state]}</Badge>}
    >
      <Facts
        rows={[
          [text.protocol, protocol && `MQTT ${protocol}`],
          [terms.reason, reason && textFor(reasons, reason)],
          [text.probe, state === 'connected' ? text.probes[probe] : text.probeAway],
          [terms.since, store.bridgeSince.value && <Time at={store.bridgeSince.value} ago />],
          [text.published, store.bridgeState.value && terms[store.bridgeState.value]],
        ]}
      />
    </Card>
  )
}

/** Reports on demand: the configuration and the doctor's findings. */
function Reports() {
  const { channel } = usePage()
  const refused = channel.liveness.value === 'live' ? undefined : terms.noConnection
  const configuration = async () => {
    const result = await api.config()
    if (!result.ok) return result
    const { text: value, path } = result.value
    return { ok: true, value, note: path === null ? text.noFile : text.fromFile({ path }) } as const
  }
  const doctor = async () => {
    const result = await api.doctor()
    return result.ok ? ({ ok: true, value: result.value.text } as const) : result
  }
  return (
    <>
      <Report
        title={text.configuration}
        hint={text.configurationHint}
        requests={[{ label: text.show, refused, ask: configuration }]}
      />
      <Report title={text.doctor} hint={text.doctorHint} requests={[{ label: text.check, refused, ask: doctor }]} />
    </>
  )
}
