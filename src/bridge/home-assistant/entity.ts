/** What an entity may be, platform by platform: a row that Home Assistant would refuse does not compile. */

export type DeviceKind = 'app' | 'hub' | 'bridge'

/** The topics that an entity of each device may read, by their names in the topics of the contract. */
export interface Readable {
  readonly app: 'app' | 'appEvent' | 'appUpdate' | 'setting'
  readonly hub: 'hubState' | 'hubInfo' | 'hubSummary'
  readonly bridge: 'bridgeState' | 'bridgeInfo' | 'bridgeLogLevel'
}

interface Common<D extends DeviceKind> {
  readonly device: D
  /** Part of the unique id: never change it. */
  readonly key: string
  /** As a person says it, without the device's name; `null` for the entity that is the device. */
  readonly name: string | null
  /** For people: one sentence. */
  readonly doc: string
  readonly category?: 'config' | 'diagnostic'
  /** Whether it is there without being asked for (default true). */
  readonly enabled?: false
  readonly icon?: `mdi:${string}`
  /** What must be online for it to be of use; default: bridge and hub, for the bridge's own the bridge. */
  readonly needs?: 'bridge' | 'nothing'
  /** The setting that it is about. */
  readonly setting?: string
}

interface Reads<D extends DeviceKind> {
  readonly reads: Readable[D]
  /** Default: the payload as it is. */
  readonly template?: string
}

interface Sends {
  /** Name of the command, for the same kind of device. */
  readonly sends: string
}

interface Renders {
  /** What is sent for a value; default: the value. */
  readonly sendsAs?: string
}

interface OnOff {
  readonly on: string
  readonly off: string
}

/** What the values of a sensor are: amounts, words of a list, a time, or any text. */
type Measure =
  | {
      readonly stateClass: 'measurement' | 'total_increasing'
      readonly unit?: string
      readonly deviceClass?: 'data_size'
      readonly options?: never
    }
  | { readonly options: readonly string[]; readonly stateClass?: never; readonly unit?: never }
  | { readonly deviceClass?: 'timestamp'; readonly stateClass?: never; readonly unit?: never; readonly options?: never }

type ByPlatform<D extends DeviceKind> =
  | ({ readonly platform: 'sensor'; readonly shows: Measure } & Reads<D>)
  | ({
      readonly platform: 'binary_sensor'
      readonly deviceClass: 'connectivity' | 'problem' | 'running'
      /** Template of further attributes, read from the same topic. */
      readonly attributes?: string
    } & Reads<D> &
      OnOff)
  | ({ readonly platform: 'switch' } & Reads<D> & Sends & OnOff)
  | ({ readonly platform: 'button' } & Sends)
  | ({ readonly platform: 'update' } & Reads<D> & Sends)
  | ({ readonly platform: 'event'; readonly types: readonly string[] } & Reads<D>)
  | ({ readonly platform: 'notify' } & Sends & Renders)
  | ({ readonly platform: 'text' } & Partial<Reads<D>> & Sends & Renders)
  | ({ readonly platform: 'select'; readonly options: readonly string[] } & Reads<D> & Sends & Renders)
  | ({ readonly platform: 'number'; readonly min: number; readonly max: number; readonly step?: number } & Reads<D> &
      Sends)

export type EntityOf<D extends DeviceKind> = Common<D> & ByPlatform<D>
export type Entity = EntityOf<'app'> | EntityOf<'hub'> | EntityOf<'bridge'>
export type Platform = Entity['platform']
