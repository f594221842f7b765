/** Copies the code of apps from the store into the data folder, and removes code that no app uses. */

import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, rmdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import * as v from 'valibot'
import { systemCode } from '../../base/failures.ts'
import { onceEach } from '../../base/text.ts'
import { compareVersions } from '../../base/versions.ts'
import type { InstallRequest } from '../core/hub-apps.ts'
import { copyApp, refuseLinksOut } from './app-folder.ts'
import { APPS_FOLDER, syncFolder } from './data-folder.ts'
import { AppId, CHANNELS, type Channel, isBelow, type Manifest, ManifestError, readManifest } from './manifest.ts'

export interface Unpacked {
  /** Absolute path of the folder with the app's code. */
  readonly folder: string
  readonly manifest: Manifest
}

export interface Sources {
  /** The folder of the app store; default: no store. */
  readonly store?: string | undefined
  /** Folders of the sample apps by id. They can be installed if the store does not have them. */
  readonly samples?: ReadonlyMap<string, string> | undefined
  /** Called with the problem of each invalid version in the store, and with ignored fields of manifests. */
  readonly warn?: ((problem: string) => void) | undefined
}

export type Offer = Manifest & Unpacked

interface Wanted extends InstallRequest {
  /** The installed version; older versions are not offered. */
  readonly present?: string | undefined
}

/** Channel name → the store's channels. Newer hubs have only two channels, `live` and `test`. */
const CHANNEL_NAMES: ReadonlyMap<string, readonly Channel[]> = new Map<string, readonly Channel[]>([
  ...CHANNELS.map((channel): [string, readonly Channel[]] => [channel, [channel]]),
  ['live', ['stable']],
  ['test', ['beta', 'alpha']],
])

/**
 * An app's row in the state names the folder with the app's code. An update unpacks the new code, changes the row, and
 * removes the old folder; a rollback restores the row and removes the new folder. If the hub is killed before the
 * update is complete, the next start removes the folder that no row names.
 */
export type Packages = ReturnType<typeof packagesOf>

/** @param data absolute path of the data folder */
export function packagesOf(data: string, { store, samples = new Map(), warn = () => {} }: Sources) {
  const apps = join(data, APPS_FOLDER)
  const warnOnce = onceEach(warn)

  /** Finds an app in the store. Reads the folders each time, because versions may be added at any time. */
  const find = (wanted: Wanted): Offer | undefined => inStore(wanted) ?? sampleFor(wanted)

  /** Returns a sample app. @throws ManifestError if it cannot be used */
  function sample(id: string): Offer {
    const folder = samples.get(id)
    if (folder === undefined) throw new ManifestError(`${id}: is not a sample app`)
    const manifest = readManifest(folder)
    return { ...manifest, manifest, folder }
  }

  function sampleFor({ id, version, present }: Wanted): Offer | undefined {
    if (!samples.has(id)) return undefined
    const offer = sample(id)
    return [version, present].every((one) => one === undefined || one === offer.version) ? offer : undefined
  }

  function inStore({ id, channel, version, present }: Wanted): Offer | undefined {
    const anyChannel = channel === undefined && version !== undefined
    const channels = anyChannel ? CHANNELS : (CHANNEL_NAMES.get(channel ?? 'stable') ?? [])
    return offers(id)
      .filter((offer) => channels.includes(offer.channel))
      .filter((offer) => version === undefined || offer.version === version)
      .filter((offer) => present === undefined || compareVersions(offer.version, present) >= 0)
      .toSorted((one, other) => compareVersions(other.version, one.version))[0]
  }

  /** Returns the offered versions. The store has one folder for each version: `STORE/<id>/<version>/app.json`. */
  function offers(id: string): Offer[] {
    if (store === undefined || !v.is(AppId, id)) return []
    const ofApp = resolve(store, id)
    return foldersIn(ofApp).flatMap((version) => offerIn(id, version, join(ofApp, version)) ?? [])
  }

  function offerIn(id: string, version: string, folder: string): Offer | undefined {
    try {
      const manifest = readManifest(folder, warnOnce)
      if (manifest.id === id && manifest.version === version) return { ...manifest, manifest, folder }
      throw new ManifestError(`${folder}: contains ${manifest.id} ${manifest.version}, not the version in its path`)
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error
      warnOnce(error.message)
      return undefined
    }
  }

  /** Copies an offer into a new folder in the data folder. @throws ManifestError if the offer cannot be used */
  async function unpack({ id, version, folder: source }: Offer): Promise<Unpacked> {
    const ofApp = join(apps, id)
    const folder = join(ofApp, `${version}-${randomBytes(6).toString('hex')}`)
    mkdirSync(ofApp, { recursive: true, mode: 0o700 })
    try {
      await copyApp(source, folder)
      for (const parent of [ofApp, apps, data]) syncFolder(parent)
      // Read the manifest of the copy, because the hub runs the copy and the store may have changed.
      return { folder, manifest: readManifest(folder) }
    } catch (error) {
      await discard(folder)
      throw error
    }
  }

  /** Uses an app in place, without a copy. @throws ManifestError, also if a link leads out of the folder */
  function adopt(folder: string): Unpacked {
    const adopted = { folder: resolve(folder), manifest: readManifest(folder, warnOnce) }
    // Skip this check for copies in the data folder, which contain no links.
    if (!isBelow(apps, adopted.folder)) refuseLinksOut(adopted.folder)
    return adopted
  }

  /** Removes a folder of unpacked code. Does not touch folders outside the data folder. */
  async function discard(folder: string): Promise<void> {
    if (!isBelow(apps, folder)) return
    await rm(folder, { recursive: true, force: true })
    removeEmpty(dirname(folder))
  }

  /** Removes the folders that are not in `used`. A killed hub may have left them behind. */
  async function sweep(used: ReadonlySet<string>): Promise<void> {
    for (const id of foldersIn(apps)) {
      const ofApp = join(apps, id)
      const remaining = foldersIn(ofApp).map((name) => join(ofApp, name))
      for (const folder of remaining) if (!used.has(folder)) await rm(folder, { recursive: true, force: true })
      removeEmpty(ofApp)
    }
  }

  return { find, sample, unpack, adopt, discard, sweep }
}

function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder)
  } catch {
    // Ignore the error: the folder is not empty, or does not exist.
  }
}

/** Returns the names of the folders in a folder; an empty list if it does not exist. */
function foldersIn(path: string): string[] {
  try {
    const entries = readdirSync(path, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCode(error))) return []
    throw error
  }
}
