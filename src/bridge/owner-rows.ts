/** Publishes the retained topics of one owner. */
import type { Logger } from 'pino'
import type { Facts, OwnerKind, OwnerOf, PublicationName, RetainedRow } from '../contract/publications.ts'
import { rowsOf, type Topics } from '../contract/topics.ts'
import type { MqttLink } from '../mqtt/link.ts'

export type Condition = NonNullable<RetainedRow<OwnerKind>['when']>

interface Place<K extends OwnerKind> {
  readonly name: PublicationName
  readonly row: RetainedRow<K>
  /** The index among the owner's rows. */
  readonly at: number
}

type Places = { readonly [K in OwnerKind]: readonly Place<K>[] }
export type RowTable = ReturnType<typeof rowTable>

/**
 * Returns the data that the rows of all owners share.
 * @param applies returns whether the configuration enables the rows that have this condition
 */
export function rowTable(
  topics: Topics,
  link: Pick<MqttLink, 'hold'>,
  log: Pick<Logger, 'error'>,
  applies: (when: Condition) => boolean,
) {
  const places = <K extends OwnerKind>(kind: K): readonly Place<K>[] =>
    rowsOf(kind)
      .filter(({ row: { when } }) => when === undefined || applies(when))
      .map((one, at) => ({ ...one, at }))
  const rows: Places = { bridge: places('bridge'), hub: places('hub'), app: places('app'), setting: places('setting') }
  return { topics, link, log, rows }
}

export class OwnerRows<K extends OwnerKind> {
  readonly #owner: OwnerOf<K>
  readonly #table: RowTable
  readonly #rows: readonly Place<K>[]
  /** The topics in the order of the rows, created on demand. */
  readonly #topics: string[] = []
  #facts: Facts[K] | undefined

  constructor(owner: OwnerOf<K>, table: RowTable) {
    const rows: readonly Place<K>[] = table.rows[owner.kind]
    this.#owner = owner
    this.#table = table
    this.#rows = rows
  }

  /** Renders the rows that depend on changed facts. */
  set(facts: Facts[K]): void {
    const before = this.#facts
    this.#facts = facts
    for (const place of this.#rows) this.#hold(place, facts, before)
  }

  /** Like `set`, but only for changes in usage figures. */
  setUsage(changed: Partial<Facts[K]>): void {
    if (this.#facts === undefined) return
    this.#facts = { ...this.#facts, ...changed }
    for (const place of this.#rows) if (place.row.hasUsage) this.#hold(place, this.#facts)
  }

  /** Clears all topics, even those that this run has not rendered, because an earlier run may have published them. */
  clear(): void {
    this.#facts = undefined
    for (const place of this.#rows) this.#table.link.hold(this.#topic(place), null)
  }

  *rendered(): Generator<readonly [topic: string, payload: string]> {
    if (this.#facts === undefined) return
    for (const place of this.#rows) {
      const payload = this.#render(place, this.#facts)
      if (typeof payload === 'string') yield [this.#topic(place), payload]
    }
  }

  #hold(place: Place<K>, facts: Facts[K], before?: Facts[K]): void {
    const payload = this.#render(place, facts, before)
    if (payload !== undefined) this.#table.link.hold(this.#topic(place), payload)
  }

  /** Returns `null` to clear the topic, `undefined` to keep the broker's message. */
  #render(place: Place<K>, facts: Facts[K], before?: Facts[K]): string | null | undefined {
    const { row } = place
    try {
      if (before !== undefined && sameDependencies(row, before, facts)) return undefined
      const value = row.render(facts)
      if (value === undefined || value === null) return value
      return row.text ? String(value) : JSON.stringify(value)
    } catch (err) {
      // Hub data must not crash the daemon, and one row must not block the others.
      const topic = this.#topic(place)
      this.#table.log.error({ topic, err }, 'the payload of a topic could not be rendered')
      return undefined
    }
  }

  #topic({ name, at }: Place<K>): string {
    const known = this.#topics[at]
    if (known !== undefined) return known
    const topic = this.#table.topics.fill(name, this.#owner)
    this.#topics[at] = topic
    return topic
  }
}

function sameDependencies<K extends OwnerKind>(
  { dependsOn, render }: RetainedRow<K>,
  before: Facts[K],
  after: Facts[K],
): boolean {
  if (dependsOn === undefined) return render(before) === render(after)
  const now = dependsOn(after)
  return dependsOn(before).every((value, i) => value === now[i])
}
