/** How the bridge, its broker and its hubs are. */

import { LOG_LEVELS } from '../../../../../contract/log-levels.ts'
import { isCrashed } from '../../../../../guardian/classify.ts'
import type { Door } from '../../commands.ts'
import { act, refusal } from '../../commands.ts'
import { Glyph } from '../../parts/glyph.tsx'
import { Badge, Card, Facts, Time } from '../../parts/small.tsx'
import { S } from '../../strings.ts'
import { FleetCard } from './fleet.tsx'
import { HubCard } from './hub.tsx'
import { Reports } from './reports.tsx'

export function BridgePage({ door }: { readonly door: Door }) {
  const { store } = door
  return (
    <div class="view">
      <h1 class="hidden">{S.bridge.title}</h1>
      <Problems door={door} />
      <div class="cards">
        <BridgeCard door={door} />
        <BrokerCard door={door} />
        <FleetCard store={store} />
        {store.own.value.map((hub) => (
          <HubCard key={hub.name} hub={hub} door={door} />
        ))}
        <Reports door={door} />
      </div>
    </div>
  )
}

function Problems({ door: { store } }: { readonly door: Door }) {
  const problems = store.health.value?.problems ?? []
  if (problems.length === 0) return null
  return (
    <ul class="problems" aria-label={S.bridge.problems}>
      {problems.map((problem) => (
        <li key={problem} class="notice bad">
          <Glyph name="alert" />
          <span>{problem}</span>
        </li>
      ))}
    </ul>
  )
}

function BridgeCard({ door }: { readonly door: Door }) {
  const { store, session } = door
  const info = store.bridgeInfo.value
  const health = store.health.value
  const startedAt = info?.started_at ?? health?.started_at
  const prefixes = store.discovery.value?.prefixes
  return (
    <Card
      title={S.bridge.bridge}
      aside={
        health && (
          <Badge tone={health.ready && health.problems.length === 0 ? 'ok' : 'warn'}>
            {health.ready ? (health.problems.length === 0 ? S.bridge.well : S.bridge.ready) : S.bridge.notReady}
          </Badge>
        )
      }
    >
      <Facts
        rows={[
          [S.bridge.version, info?.version ?? session.version],
          [S.bridge.contract, info === undefined ? undefined : String(info.contract)],
          [S.bridge.started, startedAt === undefined ? undefined : <Time at={Date.parse(startedAt)} ago />],
          [S.bridge.baseTopic, <code>{session.base_topic}</code>],
          [S.bridge.counters, <Counters door={door} />],
          [S.bridge.extensions, info?.extensions.join(', ')],
          [
            S.bridge.discovery,
            prefixes === undefined || prefixes.length === 0
              ? S.bridge.discoveryOff
              : S.bridge.discoveryOn(prefixes.join(', ')),
          ],
          [S.bridge.logLevel, <LogLevel door={door} />],
        ]}
      />
    </Card>
  )
}

/** Counted now and then, as no single change needs them at once. */
function Counters({ door: { store } }: { readonly door: Door }) {
  const apps = store.own.value.flatMap((hub) => [...hub.apps.value.values()].map(({ app }) => app.peek()))
  const crashed = apps.filter(isCrashed).length
  const updates = apps.filter(({ update_available }) => update_available === true).length
  // With each report.
  void store.health.value
  void store.recent.value
  return <>{S.bridge.counted(apps.length, crashed, updates)}</>
}

function LogLevel({ door }: { readonly door: Door }) {
  const refused = refusal(door, {}, 'log-level')
  const level = door.store.logLevel.value
  return (
    <select
      aria-label={S.bridge.logLevel}
      title={refused}
      disabled={refused !== undefined}
      value={level ?? ''}
      onChange={({ currentTarget }) => void act({}, 'log-level', currentTarget.value)}
    >
      {level === undefined && <option value="">{S.bridge.logLevelUnknown}</option>}
      {LOG_LEVELS.map((one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </select>
  )
}

function BrokerCard({ door: { store } }: { readonly door: Door }) {
  const health = store.health.value
  if (health === undefined) return null
  const { state, protocol, reason, probe } = health.mqtt
  return (
    <Card
      title={S.broker.title}
      aside={<Badge tone={state === 'connected' ? 'ok' : 'bad'}>{S.broker.states[state]}</Badge>}
    >
      <Facts
        rows={[
          [S.broker.protocol, protocol === null ? undefined : `MQTT ${protocol}`],
          [S.broker.reason, reason === null ? undefined : (S.broker.reasons[reason] ?? reason)],
          [S.broker.probe, state === 'connected' ? S.broker.probes[probe] : S.broker.probeAway],
          [
            S.broker.since,
            store.bridgeSince.value === undefined ? undefined : <Time at={store.bridgeSince.value} ago />,
          ],
          [S.broker.announced, store.bridgeState.value === undefined ? undefined : S[store.bridgeState.value]],
        ]}
      />
    </Card>
  )
}
