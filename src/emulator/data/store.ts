/** The local app store: a folder with one folder for each version of an app, `STORE/<id>/<version>/app.json`. */
import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import * as v from 'valibot'
import { compareVersions } from '../../base/versions.ts'
import { AppId, CHANNELS, type Channel, type Manifest, ManifestError, readManifest } from './manifest.ts'

/** A version of an app that the store has. */
export interface Offer {
  readonly id: string
  readonly version: string
  readonly channel: Channel
  readonly manifest: Manifest
  /** Absolute path of its folder in the store. */
  readonly folder: string
}

export interface Wanted {
  readonly id: string
  /** As the flavour calls it; default: `stable`, or any where a version is named. */
  readonly channel?: string | undefined
  /** Default: the newest. */
  readonly version?: string | undefined
  /** The version that is installed: nothing older is found. */
  readonly present?: string | undefined
}

/** Newer hubs know two channels only. */
const CHANNEL_NAMES: ReadonlyMap<string, readonly Channel[]> = new Map<string, readonly Channel[]>([
  ...CHANNELS.map((channel): [string, readonly Channel[]] => [channel, [channel]]),
  ['live', ['stable']],
  ['test', ['beta', 'alpha']],
])

export class Store {
  readonly #folder: string | undefined
  readonly #tell: (problem: string) => void
  /** The reported problem of each folder, so that it is reported once. */
  readonly #told = new Map<string, string>()

  /** @param tell - Called with the problem of a version, which is then left out. */
  constructor(folder: string | undefined, tell: (problem: string) => void) {
    this.#folder = folder === undefined ? undefined : resolve(folder)
    this.#tell = tell
  }

  /** The newest version that fits. Reads the folder each time, so that versions can be added while the hub runs. */
  find({ id, channel, version, present }: Wanted): Offer | undefined {
    const anyChannel = channel === undefined && version !== undefined
    const channels = anyChannel ? CHANNELS : (CHANNEL_NAMES.get(channel ?? 'stable') ?? [])
    return this.#offers(id)
      .filter((offer) => channels.includes(offer.channel))
      .filter((offer) => version === undefined || offer.version === version)
      .filter((offer) => present === undefined || compareVersions(offer.version, present) >= 0)
      .reduce<Offer | undefined>(
        (best, offer) => (best === undefined || isNewer(offer, best) ? offer : best),
        undefined,
      )
  }

  #offers(id: string): Offer[] {
    if (this.#folder === undefined || !v.is(AppId, id)) return []
    const ofApp = join(this.#folder, id)
    return foldersIn(ofApp).flatMap((version) => this.#offer(id, version, join(ofApp, version)) ?? [])
  }

  #offer(id: string, version: string, folder: string): Offer | undefined {
    try {
      const manifest = readManifest(folder, this.#tell)
      if (manifest.id !== id || manifest.version !== version) {
        throw new ManifestError(`${folder}: holds ${manifest.id} ${manifest.version}, not what its folders say`)
      }
      return { id, version, channel: manifest.channel, manifest, folder }
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error
      if (this.#told.get(folder) !== error.message) this.#tell(error.message)
      this.#told.set(folder, error.message)
      return undefined
    }
  }
}

const isNewer = (one: Offer, other: Offer) => compareVersions(one.version, other.version) > 0

/** Names of the folders in a folder; none where there is no such folder. */
export function foldersIn(path: string): string[] {
  try {
    const entries = readdirSync(path, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return []
    throw error
  }
}
