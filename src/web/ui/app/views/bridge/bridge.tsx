import { isCrashed } from '../../../../../contract/classify.ts'
import { LOG_LEVELS } from '../../../../../contract/log-levels.ts'
import type { FailureCode } from '../../../../../mqtt/types.ts'
import type { FleetStatus } from '../../../../server/api/protocol.ts'
import { api } from '../../api.ts'
import { act, commandName, pageRefusal, refusal } from '../../commands.ts'
import type { Store } from '../../live/store.ts'
import { Alert, Badge, Card, Facts, Report, ScrollTable, Select, Time } from '../../parts/controls.tsx'
import { hrefOf } from '../../route.ts'
import { usePage } from '../../session.ts'
import { collator, defineStrings, formatCount, NONE, terms, textFor } from '../../terms.ts'
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

/** Shows the numbers of apps. Does not render on every change of an app, because short delays do not matter here. */
function Counts() {
  const { store } = usePage()
  const apps = store.own.value.flatMap((hub) => [...hub.apps.value.values()].map(({ app }) => app.peek()))
  const crashed = apps.filter(isCrashed).length
  const updates = text.updates({ count: apps.filter(({ update_available }) => update_available === true).length })
  // Subscribe to the health and the events, so that this renders when they change.
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

function Reports() {
  const refused = pageRefusal(usePage())
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
        requests={[{ label: text.show, refused, run: configuration }]}
      />
      <Report title={text.doctor} hint={text.doctorHint} requests={[{ label: text.check, refused, run: doctor }]} />
    </>
  )
}

const fleetText = defineStrings('fleet', {
  title: 'Fleet',
  serves: 'serves its hubs',
  noLease: 'has no lease, serves nothing',
  mode: 'Hubs are assigned',
  modes: { static: 'by shard number', leases: 'by leases' },
  epoch: 'Version of the member list',
  self: 'This member',
  leader: 'Fleet leader',
  leased: 'has its lease',
  members: 'Members',
  member: 'Member',
  hubs: 'Hubs',
  thisOne: 'this one',
  others: 'Hubs of other members',
  hint: 'To control such a hub, use the page of its member, or MQTT.',
})

type State = keyof typeof TONES

const TONES = { online: 'ok', offline: 'bad', leased: 'ok' } as const

function FleetCard() {
  const { store } = usePage()
  const fleet = store.fleet.value
  if (fleet === undefined) return null
  const { mode, epoch, member, acts, speaker } = fleet
  const leader = speaker !== null && (
    <>
      {speaker} <StateBadge state={reported(store, store.topics.availability)} />
    </>
  )
  return (
    <Card
      title={fleetText.title}
      wide
      aside={<Badge tone={acts ? 'ok' : 'bad'}>{acts ? fleetText.serves : fleetText.noLease}</Badge>}
    >
      <Facts
        rows={[
          [fleetText.mode, fleetText.modes[mode]],
          [fleetText.epoch, String(epoch)],
          [fleetText.self, member],
          [fleetText.leader, leader || undefined],
        ]}
      />
      <Members fleet={fleet} />
      <OtherHubs fleet={fleet} />
    </Card>
  )
}

function Members({ fleet }: { readonly fleet: FleetStatus }) {
  const { store } = usePage()
  return (
    <>
      <h3>{fleetText.members}</h3>
      <ScrollTable
        label={fleetText.members}
        columns={[fleetText.member, terms.columns.state, fleetText.hubs, terms.since]}
      >
        {sorted(fleet.members).map(([name, { since, hubs }]) => (
          <tr key={name}>
            <th scope="row">
              {name} {name === fleet.member && <small>{fleetText.thisOne}</small>}
            </th>
            <td>
              <StateBadge state={stateOf(store, fleet, name)} />
            </td>
            <td>{formatCount(hubs)}</td>
            <td>{since === null ? NONE : <Time at={since} ago />}</td>
          </tr>
        ))}
      </ScrollTable>
    </>
  )
}

function OtherHubs({ fleet }: { readonly fleet: FleetStatus }) {
  const { store } = usePage()
  const rows = sorted(fleet.owners).filter(([, owner]) => owner !== fleet.member)
  if (rows.length === 0) return null
  // Do not show the last hub state that an offline member published, because it is no longer valid.
  const stateFrom = (hub: string, owner: string) => {
    const isThere = store.bridgeState.value === 'online' && stateOf(store, fleet, owner) !== 'offline'
    return isThere ? store.hub(hub)?.state.value : undefined
  }
  return (
    <>
      <h3>{fleetText.others}</h3>
      <ScrollTable label={fleetText.others} columns={[terms.hub, terms.columns.state, fleetText.member]}>
        {rows.map(([hub, owner]) => (
          <tr key={hub}>
            <th scope="row">{hub}</th>
            <td>
              <StateBadge state={stateFrom(hub, owner)} />
            </td>
            <td>{owner}</td>
          </tr>
        ))}
      </ScrollTable>
      <p class="quiet">{fleetText.hint}</p>
    </>
  )
}

function sorted<T>(record: Readonly<Record<string, T>>): [name: string, value: T][] {
  return Object.entries(record).toSorted(([one], [other]) => collator.compare(one, other))
}

function StateBadge({ state }: { readonly state: State | undefined }) {
  if (state === undefined) return <Badge tone="quiet">{terms.unknown}</Badge>
  return <Badge tone={TONES[state]}>{state === 'leased' ? fleetText.leased : terms[state]}</Badge>
}

/** Returns a state as published by another member; `undefined` while the broker is not connected. */
function reported(store: Store, topic: string): State | undefined {
  return store.bridgeState.value === 'online' ? store.memberStates.value.get(topic) : undefined
}

function stateOf(store: Store, { mode, member, acts }: FleetStatus, name: string): State | undefined {
  if (name === member) return store.bridgeState.value
  if (mode === 'static') return reported(store, store.topics.memberState(name))
  // Listed members have a lease. But if this member itself has no lease, its list may be outdated.
  return acts ? 'leased' : undefined
}
