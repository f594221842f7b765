/** The code of the apps: from the store into the data folder, and out of it when no app needs it any more. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, rmdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import * as v from 'valibot'
import { compareVersions } from '../../base/versions.ts'
import { copyApp, refuseLinksOut } from './app-folder.ts'
import { APPS_FOLDER, syncFolder } from './data-folder.ts'
import { AppId, CHANNELS, type Channel, isBelow, type Manifest, ManifestError, readManifest } from './manifest.ts'

export interface Unpacked {
  /** Absolute path. */
  readonly folder: string
  readonly manifest: Manifest
}

/** Where apps come from. */
export interface Sources {
  /** Path of the local app store; default: none. */
  readonly store?: string | undefined
  /** Folders of sample apps by their id, which can be installed if the store does not have them. */
  readonly samples?: ReadonlyMap<string, string> | undefined
  /** Called with the problem of each version in the store that is left out, and with ignored fields of manifests. */
  readonly tell?: ((problem: string) => void) | undefined
}

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
  /** As the flavour calls it; default: `stable`, or any if a version is named. */
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

/**
 * An app's code is what its row in the state names. So an update is: unpack, put the row, discard the former folder;
 * and a rollback is to put the former row and discard the new folder. Killed in between, the next start removes the
 * folder that no row names.
 */
export class Packages {
  readonly #apps: string
  /** A folder with one folder for each version of an app, `STORE/<id>/<version>/app.json`. */
  readonly #store: string | undefined
  readonly #samples: ReadonlyMap<string, string>
  readonly #tell: (problem: string) => void
  /** The reported problem of each folder, so that it is reported once. */
  readonly #told = new Map<string, string>()

  /** @param data - Absolute path of the data folder. */
  constructor(data: string, { store, samples = new Map(), tell = () => {} }: Sources) {
    this.#apps = join(data, APPS_FOLDER)
    this.#store = store === undefined ? undefined : resolve(store)
    this.#samples = samples
    this.#tell = tell
  }

  /** The newest version that fits, of the store or else of the samples. Reads the folders each time: versions may be added. */
  find(wanted: Wanted): Offer | undefined {
    return this.#inStore(wanted) ?? this.#sampleFor(wanted)
  }

  /** One of the samples. @throws ManifestError if it cannot be used */
  sample(id: string): Offer {
    const folder = this.#samples.get(id)
    if (folder === undefined) throw new ManifestError(`${id}: is no sample app`)
    const manifest = readManifest(folder)
    return { id, version: manifest.version, channel: manifest.channel, manifest, folder }
  }

  #sampleFor({ id, version, present }: Wanted): Offer | undefined {
    if (!this.#samples.has(id)) return undefined
    const offer = this.sample(id)
    return [version, present].every((one) => one === undefined || one === offer.version) ? offer : undefined
  }

  #inStore({ id, channel, version, present }: Wanted): Offer | undefined {
    const anyChannel = channel === undefined && version !== undefined
    const channels = anyChannel ? CHANNELS : (CHANNEL_NAMES.get(channel ?? 'stable') ?? [])
    return this.#offers(id)
      .filter((offer) => channels.includes(offer.channel))
      .filter((offer) => version === undefined || offer.version === version)
      .filter((offer) => present === undefined || compareVersions(offer.version, present) >= 0)
      .toSorted((one, other) => compareVersions(other.version, one.version))[0]
  }

  #offers(id: string): Offer[] {
    if (this.#store === undefined || !v.is(AppId, id)) return []
    const ofApp = join(this.#store, id)
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

  /** Copies an offer into a new folder of the data folder. @throws ManifestError if it cannot be used */
  async unpack({ id, version, folder: source }: Offer): Promise<Unpacked> {
    const ofApp = join(this.#apps, id)
    const folder = join(ofApp, `${version}-${randomBytes(6).toString('hex')}`)
    mkdirSync(ofApp, { recursive: true, mode: 0o700 })
    try {
      await copyApp(source, folder)
      for (const parent of [ofApp, this.#apps, dirname(this.#apps)]) await syncFolder(parent)
      // Read again: the store may have changed meanwhile, and what will run is the copy.
      return { folder, manifest: readManifest(folder) }
    } catch (error) {
      await this.discard(folder)
      throw error
    }
  }

  /** An app that runs where it is, such as one under development. @throws ManifestError also for a link out of it */
  adopt(folder: string): Unpacked {
    const adopted = { folder: resolve(folder), manifest: readManifest(folder, this.#tell) }
    // What was copied has no links.
    if (!isBelow(this.#apps, adopted.folder)) refuseLinksOut(adopted.folder)
    return adopted
  }

  /** Removes code from the data folder. Other folders stay. */
  async discard(folder: string): Promise<void> {
    if (!isBelow(this.#apps, folder)) return
    await rm(folder, { recursive: true, force: true })
    removeEmpty(dirname(folder))
  }

  /** Removes what a killed hub has left: every folder that is not among the used ones. */
  async sweep(used: ReadonlySet<string>): Promise<void> {
    for (const id of foldersIn(this.#apps)) {
      const ofApp = join(this.#apps, id)
      for (const name of foldersIn(ofApp)) {
        const folder = join(ofApp, name)
        if (!used.has(folder)) await rm(folder, { recursive: true, force: true })
      }
      removeEmpty(ofApp)
    }
  }
}

/** Another version of the app may be in it. */
function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder)
  } catch {
    // Not empty, or gone.
  }
}

/** Names of the folders in a folder; none if there is no such folder. */
function foldersIn(path: string): string[] {
  try {
    const entries = readdirSync(path, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return []
    throw error
  }
}
