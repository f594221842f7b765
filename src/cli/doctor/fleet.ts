/** What the broker tells of a fleet, as a member sees it that has this configuration. */
import { readJson } from '../../base/read-json.ts'
import type { Membership } from '../../cluster/membership.ts'
import { FLEET, type FleetPayload } from '../../contract/schemas.ts'
import type { Topics } from '../../contract/topics.ts'
import { about, type Finding } from './finding.ts'

const { ok, problem } = about('fleet')

const WAYS = { static: 'by number', leases: 'by leases' } as const

/** `held`: what is retained, by topic; `topics` are the member's. */
export function examineFleet(
  held: ReadonlyMap<string, string>,
  topics: Topics,
  membership: Membership,
): readonly Finding[] {
  const own = held.get(topics.of('bridgeState', {}))
  const state = held.get(topics.availability)
  const told = readJson(FLEET, held.get(topics.of('fleet', {})) ?? '')
  const findings: Finding[] = []
  if (own !== undefined) findings.push(ok(`the member ${membership.member} is ${own}`))
  if (state === undefined) return findings
  const count = told === undefined ? '' : `, with ${told.count === 1 ? 'one member' : `${told.count} members`}`
  findings.push(ok(`the fleet with the base topic ${topics.base} is ${state}${count}`))
  // What was told by a fleet that has ended says nothing of the next one.
  if (state !== 'online' || told === undefined) return findings
  return [...findings, ...differences(told, membership)]
}

/** Members that go by another configuration take hubs for theirs that others have. */
function differences(told: FleetPayload, membership: Membership): Finding[] {
  const { mode } = membership
  if (told.mode !== mode) {
    const text = `its members share the hubs ${WAYS[told.mode]}, and this configuration says ${WAYS[mode]}`
    return [problem(text, 'give all members the same configuration, and restart them')]
  }
  if (mode === 'leases' || told.count === membership.count) return []
  const text = `its members go by a count of ${told.count}, and this configuration says ${membership.count}`
  return [problem(text, 'change it for all members, and restart them')]
}
