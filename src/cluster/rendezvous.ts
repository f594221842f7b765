/**
 * Which member a resource belongs to, by rendezvous hashing: each member draws a number for it and the highest wins. When
 * a member comes or goes, only its own share moves.
 */
import { createHash } from 'node:crypto'

/** Six bytes are a whole number that is exact. */
const BYTES = 6

/** `undefined` where there are no members. */
export function ownerOf(resource: string, members: Iterable<string>): string | undefined {
  let owner: string | undefined
  let highest = -1
  for (const member of members) {
    const drawn = createHash('sha256').update(`${member}\n${resource}`).digest().readUIntBE(0, BYTES)
    if (drawn < highest || (drawn === highest && owner !== undefined && owner < member)) continue
    owner = member
    highest = drawn
  }
  return owner
}

/** What belongs to one of them. */
export function shareOf(member: string, resources: Iterable<string>, members: readonly string[]): Set<string> {
  return new Set([...resources].filter((resource) => ownerOf(resource, members) === member))
}
