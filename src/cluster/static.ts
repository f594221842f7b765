/** Members whose number is configured: each serves its share, whoever else is there. */
import { type Fleet, type FleetView, LEADER } from './fleet.ts'
import { ownerOf, shareOf } from './rendezvous.ts'

/** `index` from 0; people count from 1. */
export const shardName = (index: number) => `shard-${index + 1}`

export class StaticFleet implements Fleet {
  readonly member: string
  readonly view: FleetView
  readonly #names: readonly string[]
  readonly #resources: () => readonly string[]
  #apply: (serves: ReadonlySet<string>) => Promise<void> = async () => {}

  constructor({
    index,
    count,
    resources,
  }: {
    /** From 0. */
    readonly index: number
    readonly count: number
    /** What there is to share. */
    readonly resources: () => readonly string[]
  }) {
    this.#names = Array.from({ length: count }, (_, i) => shardName(i))
    this.#resources = resources
    this.member = shardName(index)
    this.view = { mode: 'static', epoch: count, members: new Map(this.#names.map((name) => [name, { since: null }])) }
  }

  start(apply: (serves: ReadonlySet<string>) => Promise<void>): void {
    this.#apply = apply
    this.resourcesChanged()
  }

  resourcesChanged(): void {
    void this.#apply(shareOf(this.member, this.#resources(), this.#names))
  }

  mayAct(): boolean {
    return true
  }

  /** Nobody takes over. */
  leave(): Promise<boolean> {
    return Promise.resolve(ownerOf(LEADER, this.#names) !== this.member)
  }
}
