/** What apps as processes need of the hub that they live on. */
import type { Clock } from '../../base/clock.ts'
import type { AppEvent } from '../apps.ts'
import type { AppRecord, Flavour } from '../records.ts'
import type { Limits, Watch } from './watch.ts'

/** An app as it outlives the hub; the record that clients see is made of it and of its manifest. */
export interface StoredApp {
  readonly id: string
  readonly folder: string
  readonly version: string
  readonly enabled: boolean
  readonly autoupdate: boolean
  readonly channel: string
  readonly origin: string
  readonly crashed: boolean
  readonly crashedMessage: string | null
  readonly crashedCount: number
  readonly exitCode: number | null
  readonly exitSignal: string | null
}

export interface State {
  apps(): readonly StoredApp[]
  put(app: StoredApp): void
  remove(id: string, options: { readonly purgeSettings: boolean }): void
  settings(owner: string): ReadonlyMap<string, unknown>
  setSetting(owner: string, name: string, value: unknown): void
  unsetSetting(owner: string, name: string): void
}

export interface Manifest {
  readonly id: string
  readonly name: string
  readonly version: string
  readonly author?: string | undefined
  readonly main: string
  readonly permissions: readonly string[]
  readonly settings?: Readonly<Record<string, unknown>> | undefined
  readonly color?: string | undefined
}

/** An app's code. */
export interface Code {
  /** Absolute path. */
  readonly folder: string
  readonly manifest: Manifest
}

export interface Packages<Offer extends { readonly version: string } = { readonly version: string }> {
  find(wanted: {
    id: string
    channel?: string | undefined
    version?: string | undefined
    present?: string
  }): Offer | undefined
  latest(id: string, channel: string): Offer | undefined
  unpack(offer: Offer): Promise<Code>
  adopt(folder: string): Code
  discard(folder: string): Promise<void>
}

export interface InApp {
  call(
    appId: string,
    request: { section: string; item: string; operation: string; args: Record<string, unknown> },
  ): Promise<unknown>
  subscribe(appId: string, uri: string, listener: (event: string, payload: unknown) => void): () => void
  emit(appId: string, event: string, payload: unknown): void
}

export interface AppsHost {
  readonly flavour: Flavour
  tell(event: AppEvent, payload: unknown): void
  readonly inApp: InApp
}

/** What all apps of one hub share. */
export interface World {
  readonly clock: Clock
  readonly state: State
  readonly host: AppsHost
  readonly limits: Limits
  readonly watch: Watch
  /** The version that the store has for an app, where it is a newer one. */
  readonly offered: (app: StoredApp) => string | undefined
  /** The record has changed. */
  readonly show: (record: AppRecord) => void
}
