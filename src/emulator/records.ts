/** The app records that hubs send, and the differences between the generations of hubs. */
import type { StoredApp } from './data/state.ts'
import type { AppSeed } from './hub-file.ts'

export type { AppSeed } from './hub-file.ts'

/**
 * `older`: hubs with speech, gc and exit codes. `newer`: hubs with a `crashed` state and live/test channels.
 * `self-hosted`: a newer hub's software on the user's own machine. `reference`: only what the API documentation
 * describes, so no identity headers, no session, and no list of voices.
 */
export const FLAVOURS = ['older', 'newer', 'self-hosted', 'reference'] as const
export type Flavour = (typeof FLAVOURS)[number]
export type AppState = 'stopped' | 'stopping' | 'starting' | 'running' | 'crashed'

export type Usage = { cpu: number; mem: number }

/** An app's record as the hub sends it. Tests may override any field. */
export interface AppRecord {
  readonly id: string
  readonly name: string
  readonly version: string
  readonly enabled: boolean
  readonly autoupdate: boolean
  readonly state: AppState
  readonly channel: string
  readonly crashed: boolean
  readonly crashedMessage: string | null
  readonly updateAvailable: unknown
  readonly usage: Usage
  readonly [field: string]: unknown
}

export type Patch = Readonly<Record<string, unknown>>

interface Generation {
  channels: readonly string[]
  /**
   * Whether these are newer hubs. They always delete the settings of an uninstalled app, install the version that the
   * client names, and require a message for getAppStd and the handshake's token for the realtime namespace.
   */
  isNewer: boolean
  offer(version: string | undefined): unknown
  crash(crash: Pick<StoredApp, 'crashedMessage' | 'crashedCount' | 'exitCode' | 'exitSignal'>): Patch
  /** The field with the number of crashes. */
  counter: 'exitCount' | 'crashedCount'
  recovered: Patch
  stateFields(state: AppState): Patch
  extras(seed: AppSeed): Patch
}

const OLDER: Generation = {
  channels: ['stable', 'beta', 'alpha'],
  isNewer: false,
  offer: (version) => (version === undefined ? null : { version, permissions: [] }),
  crash: ({ crashedMessage, crashedCount, exitCode, exitSignal }) => ({
    state: 'stopped',
    ready: false,
    crashed: true,
    crashedMessage,
    exitCode,
    exitSignal,
    exitCount: crashedCount,
  }),
  counter: 'exitCount',
  recovered: { crashed: false, crashedMessage: null, exitCode: null, exitSignal: null },
  stateFields: (state) => ({ state, ready: state === 'running' }),
  extras: (seed) => ({
    uri: `homey:app:${seed.id}`,
    sdk: 3,
    ready: false,
    exitCount: 0,
    exitCode: null,
    exitSignal: null,
    brandColor: seed.color ?? '#4A6572',
    icon: `/app/${seed.id}/assets/icon.svg`,
    iconObj: { id: `icon-${seed.id}`, url: `/icon/icon-${seed.id}` },
    images: { small: `/app/${seed.id}/assets/images/small.png`, large: `/app/${seed.id}/assets/images/large.png` },
    hasDrivers: seed.hasDrivers ?? true,
    author: { name: authorOf(seed), email: 'author@example.org' },
  }),
}

const NEWER: Generation = {
  channels: ['live', 'test'],
  isNewer: true,
  offer: (version) => version !== undefined,
  crash: ({ crashedMessage, crashedCount }) => ({ state: 'crashed', crashed: true, crashedMessage, crashedCount }),
  counter: 'crashedCount',
  recovered: { crashed: false, crashedMessage: null },
  stateFields: (state) => ({ state }),
  extras: (seed) => ({
    crashedCount: 0,
    color: seed.color ?? '#4A6572',
    iconObj: {},
    images: {},
    author: { name: authorOf(seed) },
  }),
}

export const GENERATIONS: Readonly<Record<Flavour, Generation>> = {
  older: OLDER,
  reference: OLDER,
  newer: NEWER,
  'self-hosted': { ...NEWER, offer: (version) => version ?? false },
}

const authorOf = (seed: AppSeed) => seed.author ?? 'Nobody in Particular'

export const NO_USAGE: Usage = { cpu: 0, mem: 0 }

export function recordOf(seed: AppSeed, flavour: Flavour): AppRecord {
  const generation = GENERATIONS[flavour]
  const enabled = seed.enabled ?? true
  const up = enabled && seed.crashed === undefined
  const base: AppRecord = {
    id: seed.id,
    name: seed.name ?? seed.id,
    version: seed.version ?? '1.0.0',
    enabled,
    autoupdate: seed.autoupdate ?? true,
    state: 'stopped',
    channel: seed.channel ?? generation.channels[0] ?? '',
    origin: seed.origin ?? 'appstore',
    crashed: false,
    crashedMessage: null,
    settings: Object.keys(seed.settings ?? {}).length > 0,
    compatibility: '>=5.0.0',
    permissions: seed.permissions ?? [],
    updateAvailable: generation.offer(seed.update),
    usage: up ? (seed.usage ?? { cpu: 0.01, mem: 40_000_000 }) : NO_USAGE,
    ...generation.extras(seed),
    ...generation.stateFields(up ? 'running' : 'stopped'),
  }
  return { ...base, ...(seed.crashed !== undefined && crashOf(base, seed.crashed, flavour)), ...seed.record }
}

export function crashOf(record: AppRecord, message: string, flavour: Flavour): Patch {
  const { crash, counter } = GENERATIONS[flavour]
  const previous = record[counter]
  const crashedCount = (typeof previous === 'number' ? previous : 0) + 1
  return { ...crash({ crashedMessage: message, crashedCount, exitCode: 1, exitSignal: null }), usage: NO_USAGE }
}
