/**
 * What the broker shall hold below the base topic: renders the rows of an owner when something is known of it, and
 * clears everything of an owner that is gone.
 */
import type { Facts, Held, Owner, OwnerKind, OwnerOf } from '../contract/publications.ts'
import { rowsOf, type Topics } from '../contract/topics.ts'

export type Condition = NonNullable<Held<OwnerKind>['when']>

export interface HoldingsOptions {
  readonly topics: Topics
  /** What the broker shall hold under a topic; `null` for nothing. Equal to what it shall hold already: no message. */
  readonly hold: (topic: string, payload: string | null) => void
  /** Whether configuration asks for the rows with this condition. */
  readonly applies: (when: Condition) => boolean
  /** A row could not be rendered: the broker keeps what it has under the topic. */
  readonly onFailure: (topic: string, error: unknown) => void
}

/** An owner that something is known of, and what it owns: the bridge its hubs, a hub its apps, an app its settings. */
interface Node {
  readonly owner: Owner
  facts: Facts[OwnerKind] | undefined
  /** Made for the first child: most apps have none. */
  children: Map<string, Node> | undefined
}

type Rows = { readonly [K in OwnerKind]: ReturnType<typeof rowsOf<K>> }

export class Holdings {
  readonly #options: HoldingsOptions
  readonly #rows: Rows
  readonly #root: Node = { owner: { kind: 'bridge' }, facts: undefined, children: undefined }

  constructor(options: HoldingsOptions) {
    const { applies } = options
    const applying = <K extends OwnerKind>(kind: K) =>
      rowsOf(kind).filter(({ row: { when } }) => when === undefined || applies(when))
    this.#options = options
    this.#rows = {
      bridge: applying('bridge'),
      hub: applying('hub'),
      app: applying('app'),
      setting: applying('setting'),
    }
  }

  /** Takes in what is known of an owner; of its rows, those are rendered that follow from something that changed. */
  set<K extends OwnerKind>(owner: OwnerOf<K>, facts: Facts[K]): void {
    const { topics, hold, onFailure } = this.#options
    const node = this.#make(owner)
    // A node is found by its owner, so what it keeps is of the owner's kind.
    const before = node.facts as Facts[K] | undefined
    node.facts = facts
    const rows: Rows[K] = this.#rows[owner.kind]
    for (const { name, row } of rows) {
      if (before !== undefined && sameBase(row, before, facts)) continue
      const topic = topics.fill(name, owner)
      try {
        const value = row.render(facts)
        if (value === undefined) continue
        hold(topic, value === null ? null : row.text ? String(value) : JSON.stringify(value))
      } catch (error) {
        // What comes from a hub must not end the daemon, and one row must not keep the others back.
        onFailure(topic, error)
      }
    }
  }

  /** Clears everything of an owner that is gone, and of all below it. */
  drop(owner: Owner): void {
    const parent = this.#find(parentOf(owner))
    const node = parent?.children?.get(keyOf(owner))
    parent?.children?.delete(keyOf(owner))
    this.#clear(owner, node)
  }

  /** Forgets an owner and all below it: somebody else writes their topics from now on. */
  forget(owner: Owner): void {
    this.#find(parentOf(owner))?.children?.delete(keyOf(owner))
  }

  #clear(owner: Owner, node: Node | undefined): void {
    const { topics, hold } = this.#options
    for (const child of node?.children?.values() ?? []) this.#clear(child.owner, child)
    for (const { name } of this.#rows[owner.kind]) hold(topics.fill(name, owner), null)
  }

  #find(owner: Owner | undefined): Node | undefined {
    if (owner === undefined) return undefined
    return owner.kind === 'bridge' ? this.#root : this.#find(parentOf(owner))?.children?.get(keyOf(owner))
  }

  #make(owner: Owner): Node {
    const above = parentOf(owner)
    if (above === undefined) return this.#root
    const parent = this.#make(above)
    parent.children ??= new Map()
    let node = parent.children.get(keyOf(owner))
    if (node === undefined) {
      node = { owner, facts: undefined, children: undefined }
      parent.children.set(keyOf(owner), node)
    }
    return node
  }
}

function parentOf(owner: Owner): Owner | undefined {
  switch (owner.kind) {
    case 'bridge':
      return undefined
    case 'hub':
      return { kind: 'bridge' }
    case 'app':
      return { kind: 'hub', hub: owner.hub }
    case 'setting':
      return { kind: 'app', hub: owner.hub, app: owner.app }
  }
}

/** What tells an owner from the others of its parent. */
function keyOf(owner: Owner): string {
  switch (owner.kind) {
    case 'bridge':
      return ''
    case 'hub':
      return owner.hub
    case 'app':
      return owner.app
    case 'setting':
      return owner.name
  }
}

/** Whether what a row follows from is the same before and after. */
function sameBase<K extends OwnerKind>({ dependsOn }: Held<K>, before: Facts[K], after: Facts[K]): boolean {
  if (dependsOn === undefined) return false
  const now = dependsOn(after)
  return dependsOn(before).every((value, i) => value === now[i])
}
