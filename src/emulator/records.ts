/** The wire format of apps, and how the generations of hubs differ in it. */
import type { AppSeed } from './hub-file.ts'

export type { AppSeed } from './hub-file.ts'

/**
 * `older`: hubs with speech, gc and exit codes. `newer`: hubs with a `crashed` state and live/test channels.
 * `self-hosted`: a newer hub's software on the user's own machine. `reference`: only what the documentation of the API
 * has, so no identity headers, no session, and no list of voices.
 */
export const FLAVOURS = ['older', 'newer', 'self-hosted', 'reference'] as const
export type Flavour = (typeof FLAVOURS)[number]
export type AppState = 'stopped' | 'stopping' | 'starting' | 'running' | 'crashed'

export interface Usage {
  cpu: number
  mem: number
}

/** A wire record. Tests may override any field, so the hub itself relies only on `id`. */
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
  /** Whether uninstalling always deletes the settings too. */
  purges: boolean
  /** Whether getAppStd requires a message. */
  wantsMessage: boolean
  /** Whether the realtime namespace requires the token of the handshake. */
  namespaceToken: boolean
  /** Whether the store accepts a version to install. */
  installsVersions: boolean
  offer(version: string | undefined): unknown
  crash(record: AppRecord, message: string): Patch
  recovered: Patch
  stands(state: AppState): Patch
  extras(seed: AppSeed): Patch
}

const OLDER: Generation = {
  channels: ['stable', 'beta', 'alpha'],
  purges: false,
  wantsMessage: false,
  namespaceToken: false,
  installsVersions: false,
  offer: (version) => (version === undefined ? null : { version, permissions: [] }),
  crash: (record, message) => ({
    state: 'stopped',
    ready: false,
    crashed: true,
    crashedMessage: message,
    exitCode: 1,
    exitSignal: null,
    exitCount: count(record['exitCount']) + 1,
  }),
  recovered: { crashed: false, crashedMessage: null, exitCode: null, exitSignal: null },
  stands: (state) => ({ state, ready: state === 'running' }),
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
  purges: true,
  wantsMessage: true,
  namespaceToken: true,
  installsVersions: true,
  offer: (version) => version !== undefined,
  crash: (record, message) => ({
    state: 'crashed',
    crashed: true,
    crashedMessage: message,
    crashedCount: count(record['crashedCount']) + 1,
  }),
  recovered: { crashed: false, crashedMessage: null },
  stands: (state) => ({ state }),
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
const count = (value: unknown) => (typeof value === 'number' ? value : 0)

export const NO_USAGE: Usage = { cpu: 0, mem: 0 }

/** The record of an app that was installed some time ago: running, disabled or crashed, as declared. */
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
    ...generation.stands(up ? 'running' : 'stopped'),
  }
  const crash = seed.crashed === undefined ? {} : generation.crash(base, seed.crashed)
  return { ...base, ...crash, ...seed.record }
}
