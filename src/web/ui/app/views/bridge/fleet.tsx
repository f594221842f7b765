/** The fleet, as this member of it knows it: who belongs to it, and who has which hub. */
import type { ComponentChildren } from 'preact'
import type { FleetStatus } from '../../../../server/api/protocol.ts'
import { collator, formatCount } from '../../format.ts'
import type { Store } from '../../live/store.ts'
import { Badge, Card, Facts, Time } from '../../parts/small.tsx'
import { S } from '../../strings.ts'

interface FleetProps {
  readonly store: Store
  readonly fleet: FleetStatus
}

type State = keyof typeof TONES

const TONES = { online: 'ok', offline: 'bad', leased: 'ok' } as const
const TEXTS: Readonly<Record<State, string>> = { online: S.online, offline: S.offline, leased: S.fleet.leased }

/** Nothing where this bridge is in none. */
export function FleetCard({ store }: Pick<FleetProps, 'store'>) {
  const fleet = store.fleet.value
  if (fleet === undefined) return null
  const { mode, epoch, member, acts, speaker } = fleet
  return (
    <Card
      title={S.fleet.title}
      wide
      aside={<Badge tone={acts ? 'ok' : 'bad'}>{acts ? S.fleet.acts : S.fleet.idle}</Badge>}
    >
      <Facts
        rows={[
          [S.fleet.mode, S.fleet.modes[mode]],
          [S.fleet.epoch, String(epoch)],
          [S.fleet.member, member],
          [
            S.fleet.speaker,
            speaker === null ? undefined : (
              <>
                {speaker} <StateBadge state={heard(store, store.topics.availability)} />
              </>
            ),
          ],
        ]}
      />
      <Members store={store} fleet={fleet} />
      <OtherHubs store={store} fleet={fleet} />
    </Card>
  )
}

function Members({ store, fleet }: FleetProps) {
  const { members, member } = fleet
  const rows = Object.entries(members).toSorted(([one], [other]) => collator.compare(one, other))
  return (
    <Table title={S.fleet.members} columns={S.fleet.memberColumns}>
      {rows.map(([name, { since, hubs }]) => (
        <tr key={name}>
          <th scope="row">
            {name} {name === member && <small>{S.fleet.thisOne}</small>}
          </th>
          <td>
            <StateBadge state={stateOf(store, fleet, name)} />
          </td>
          <td>{formatCount(hubs)}</td>
          <td>{since === null ? S.none : <Time at={Date.parse(since)} ago />}</td>
        </tr>
      ))}
    </Table>
  )
}

function OtherHubs({ store, fleet }: FleetProps) {
  const { owners, member } = fleet
  const known = new Map(store.hubs.value.map((hub) => [hub.name, hub]))
  // What a member has said last is not true any more when it is gone.
  const stateFrom = (hub: string, owner: string) => {
    const isThere = store.bridgeState.value === 'online' && stateOf(store, fleet, owner) !== 'offline'
    return isThere ? known.get(hub)?.state.value : undefined
  }
  const rows = Object.entries(owners)
    .filter(([, owner]) => owner !== member)
    .toSorted(([one], [other]) => collator.compare(one, other))
  if (rows.length === 0) return null
  return (
    <>
      <Table title={S.fleet.others} columns={S.fleet.hubColumns}>
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
      <p class="small quiet">{S.fleet.hint}</p>
    </>
  )
}

interface TableProps {
  readonly title: string
  readonly columns: readonly string[]
  readonly children: ComponentChildren
}

function Table({ title, columns, children }: TableProps) {
  return (
    <>
      <h3>{title}</h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and a keyboard must be able to. */}
      <div class="scroll" tabIndex={0}>
        <table class="members" aria-label={title}>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>{children}</tbody>
        </table>
      </div>
    </>
  )
}

function StateBadge({ state }: { readonly state: State | undefined }) {
  if (state === undefined) return <Badge tone="quiet">{S.unknown}</Badge>
  return <Badge tone={TONES[state]}>{TEXTS[state]}</Badge>
}

/** What the broker holds on a state topic, as long as it can be asked. */
function heard(store: Store, topic: string): State | undefined {
  return store.bridgeState.value === 'online' ? store.memberStates.value.get(topic) : undefined
}

function stateOf(store: Store, { mode, member, acts }: FleetStatus, name: string): State | undefined {
  if (name === member) return store.bridgeState.value
  if (mode === 'static') return heard(store, store.topics.memberState(name))
  // Who has lost its lease is no member any more; without a lease of its own, this one does not hear of that.
  return acts ? 'leased' : undefined
}
