/** What the public store says of the apps of one hub: it names the newest version where the hub does not. */
import { severityOf } from '../base/versions.ts'
import type { App, AppList, AppPatch, Apps } from './app.ts'

/** A version of an app in the store. */
export interface Release {
  readonly version: string
  /** One line of plain text, as long as Home Assistant takes. */
  readonly changelog: string | null
}

/** Far above what a hub has. */
const MOST = 5_000

export class Releases {
  readonly #all = new Map<string, { readonly release: Release; readonly isNamed: boolean }>()
  /** By the id of the app; `isNamed`: the hub itself names the newest version. */
  readonly all: ReadonlyMap<string, { readonly release: Release }> = this.#all

  /**
   * Takes in the release of an app, which the hub may not have listed yet; `undefined`: none. Returns what that changes
   * of the app; `undefined` if it is not new.
   */
  learn(id: string, release: Release | undefined, app: App | undefined): AppPatch | undefined {
    const known = this.#all.get(id)
    if (known?.release === release || (known === undefined && this.#all.size >= MOST)) return undefined
    const isNamed = known?.isNamed ?? (app?.latest_version ?? null) !== null
    if (release === undefined) this.#all.delete(id)
    else this.#all.set(id, { release, isNamed })
    return isNamed || app === undefined ? {} : { latest_version: newerThan(app, release) }
  }

  /** Completes what a hub says of an app. */
  fill(id: string, patch: AppPatch, app: App | undefined): AppPatch {
    const { release } = this.#all.get(id) ?? {}
    if (release === undefined || patch.latest_version === undefined) return patch
    const isNamed = patch.latest_version !== null
    this.#all.set(id, { release, isNamed })
    return isNamed ? patch : { ...patch, latest_version: newerThan({ ...app, ...patch }, release) }
  }

  /** The same for a whole list. */
  fillAll(list: AppList, apps: Apps): AppList {
    return new Map([...list].map(([id, patch]) => [id, patch && this.fill(id, patch, apps.get(id))] as const))
  }

  /** An app is gone. */
  delete(id: string): void {
    this.#all.delete(id)
  }

  clear(): void {
    this.#all.clear()
  }
}

/** The version of a release, if it is newer than that of an app and the hub does not deny that there is an update. */
export function newerThan({ version = null, update_available }: AppPatch, release: Release | undefined): string | null {
  if (release === undefined || update_available === false) return null
  const step = severityOf(version, release.version)
  return step === null || step === 'none' ? null : release.version
}
