/** What the rest of the program sees of a fleet. */

/** The resource besides the hubs: whoever has it speaks for the fleet, and answers what is for no hub. */
export const LEADER = '$speaker'

export interface FleetView {
  readonly mode: 'static' | 'leases'
  /** Grows whenever the members change. */
  readonly epoch: number
  /** By name: since when (ISO 8601; `null` where that is not known). */
  readonly members: ReadonlyMap<string, { readonly since: string | null }>
}

export interface Fleet {
  /** This member's name. */
  readonly member: string
  readonly view: FleetView
  /**
   * Begins. `apply` is called with all that this member serves from then on, hubs and `LEADER`, whenever that changes,
   * one call at a time; it resolves when everything else has stopped.
   */
  start(apply: (serves: ReadonlySet<string>) => Promise<void>): void
  /** Which resources are configured has changed. */
  resourcesChanged(): void
  /** Whether this member may ask hubs and publish at this moment. Cheap: it is asked before each request and publish. */
  mayAct(): boolean
  /** Stops what it serves, and ends. Returns whether members are left that can speak; `undefined`: that is not known. */
  leave(): Promise<boolean | undefined>
}
