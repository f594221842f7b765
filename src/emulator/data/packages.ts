/** The code of the apps: from the store into the data folder, and out of it when no app needs it any more. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { copyApp, refuseLinksOut } from './app-folder.ts'
import { APPS_FOLDER } from './data-folder.ts'
import { isBelow, type Manifest, ManifestError, readManifest } from './manifest.ts'
import { foldersIn, type Offer, Store, type Wanted } from './store.ts'
import { syncFolder } from './sync.ts'

export type { Offer, Wanted } from './store.ts'

export interface Unpacked {
  /** Absolute path. */
  readonly folder: string
  readonly manifest: Manifest
}

/**
 * An app's code is what its row in the state names. So an update is: unpack, put the row, discard the former folder;
 * and a rollback is to put the former row and discard the new folder. Killed in between, the next start removes the
 * folder that no row names.
 */
export class Packages {
  readonly #apps: string
  readonly #store: Store
  readonly #samples: ReadonlyMap<string, string>
  readonly #tell: (problem: string) => void

  constructor({
    data,
    store,
    samples = new Map(),
    tell = () => {},
  }: {
    /** Absolute path of the data folder. */
    readonly data: string
    /** Path of the store; without one it has nothing. */
    readonly store?: string | undefined
    /** Folders of apps by their id, which can be installed where the store does not have them. */
    readonly samples?: ReadonlyMap<string, string> | undefined
    /** Called with the problem of each version in the store that is left out, and with ignored fields of manifests. */
    readonly tell?: ((problem: string) => void) | undefined
  }) {
    this.#apps = join(data, APPS_FOLDER)
    this.#store = new Store(store, tell)
    this.#samples = samples
    this.#tell = tell
  }

  /** The newest version that fits, of the store or else of the samples; read anew. */
  find(wanted: Wanted): Offer | undefined {
    return this.#store.find(wanted) ?? this.#sampleFor(wanted)
  }

  /** One of the samples. @throws ManifestError where it cannot be used */
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

  /** Copies an offer into a new folder of the data folder. @throws ManifestError where it cannot be used */
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
