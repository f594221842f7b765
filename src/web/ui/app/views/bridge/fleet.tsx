/** The fleet from the point of view of this member: the members, and which of them serves which hub. */
import type { FleetStatus } from '../../../../server/api/protocol.ts'
import { collator, formatCount } from '../../format.ts'
import type { Store } from '../../live/store.ts'
import { Badge } from '../../parts/controls.tsx'
import { Card, Facts, Table, Time } from '../../parts/layout.tsx'
import { usePage } from '../../session.ts'
import { defineStrings, NONE, terms } from '../../terms.ts'

const text = defineStrings('fleet', {
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

/** Empty if this bridge is not in a fleet. */
export function FleetCard() {
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
    <Card title={text.title} wide aside={<Badge tone={acts ? 'ok' : 'bad'}>{acts ? text.serves : text.noLease}</Badge>}>
      <Facts
        rows={[
          [text.mode, text.modes[mode]],
          [text.epoch, String(epoch)],
          [text.self, member],
          [text.leader, leader || undefined],
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
      <h3>{text.members}</h3>
      <Table label={text.members} columns={[text.member, terms.columns.state, text.hubs, terms.since]}>
        {sorted(fleet.members).map(([name, { since, hubs }]) => (
          <tr key={name}>
            <th scope="row">
              {name} {name === fleet.member && <small>{text.thisOne}</small>}
            </th>
            <td>
              <StateBadge state={stateOf(store, fleet, name)} />
            </td>
            <td>{formatCount(hubs)}</td>
            <td>{since === null ? NONE : <Time at={since} ago />}</td>
          </tr>
        ))}
      </Table>
    </>
  )
}

function OtherHubs({ fleet }: { readonly fleet: FleetStatus }) {
  const { store } = usePage()
  const rows = sorted(fleet.owners).filter(([, owner]) => owner !== fleet.member)
  if (rows.length === 0) return null
  // The last report of a member that is offline is no longer valid.
  const stateFrom = (hub: string, owner: string) => {
    const isThere = store.bridgeState.value === 'online' && stateOf(store, fleet, owner) !== 'offline'
    return isThere ? store.hub(hub)?.state.value : undefined
  }
  return (
    <>
      <h3>{text.others}</h3>
      <Table label={text.others} columns={[terms.hub, terms.columns.state, text.member]}>
        {rows.map(([hub, owner]) => (
          <tr key={hub}>
            <th scope="row">{hub}</th>
            <td>
              <StateBadge state={stateFrom(hub, owner)} />
            </td>
            <td>{owner}</td>
          </tr>
        ))}
      </Table>
      <p class="quiet">{text.hint}</p>
    </>
  )
}

function sorted<T>(record: Readonly<Record<string, T>>): [name: string, value: T][] {
  return Object.entries(record).toSorted(([one], [other]) => collator.compare(one, other))
}

function StateBadge({ state }: { readonly state: State | undefined }) {
  if (state === undefined) return <Badge tone="quiet">{terms.unknown}</Badge>
  return <Badge tone={TONES[state]}>{state === 'leased' ? text.leased : terms[state]}</Badge>
}

/** The state on a retained state topic; `undefined` while the broker is not connected. */
function reported(store: Store, topic: string): State | undefined {
  return store.bridgeState.value === 'online' ? store.memberStates.value.get(topic) : undefined
}

function stateOf(store: Store, { mode, member, acts }: FleetStatus, name: string): State | undefined {
  if (name === member) return store.bridgeState.value
  if (mode === 'static') return reported(store, store.topics.memberState(name))
  // A member that has lost its lease is not in the list. If this member has no lease, its list may be outdated.
  return acts ? 'leased' : undefined
}
