/** The releases of one hub's apps in the public store. They supply the newest version if the hub does not report it. */
import { severityOf } from '../base/versions.ts'
import type { App, AppList, AppPatch, Apps } from './app.ts'

/** A version of an app in the store. */
export interface Release {
  readonly version: string
  /** One line of plain text, limited to the length that Home Assistant accepts. */
  readonly changelog: string | null
}

/** Far more apps than a hub has. */
const MOST = 5_000

export class Releases {
  readonly #all = new Map<string, { readonly release: Release; readonly isNamed: boolean }>()
  /** Releases by app id; `isNamed`: the hub itself reports the newest version. */
  readonly all: ReadonlyMap<string, { readonly release: Release }> = this.#all

  /**
   * Records the release of an app, which the hub may not have listed yet; `undefined` if it has none. Returns the
   * change of the app; `undefined` if the release is the same.
   */
  learn(id: string, release: Release | undefined, app: App | undefined): AppPatch | undefined {
    const known = this.#all.get(id)
    if (known?.release === release || (known === undefined && this.#all.size >= MOST)) return undefined
    const isNamed = known?.isNamed ?? (app?.latest_version ?? null) !== null
    if (release === undefined) this.#all.delete(id)
    else this.#all.set(id, { release, isNamed })
    return isNamed || app === undefined ? {} : { latest_version: newerThan(app, release) }
  }

  /** Adds the newest version to a hub's patch of an app. */
  fill(id: string, patch: AppPatch, app: App | undefined): AppPatch {
    const { release } = this.#all.get(id) ?? {}
    if (release === undefined || patch.latest_version === undefined) return patch
    const isNamed = patch.latest_version !== null
    this.#all.set(id, { release, isNamed })
    return isNamed ? patch : { ...patch, latest_version: newerThan({ ...app, ...patch }, release) }
  }

  /** Adds the newest versions to a hub's whole list. */
  fillAll(list: AppList, apps: Apps): AppList {
    return new Map([...list].map(([id, patch]) => [id, patch && this.fill(id, patch, apps.get(id))] as const))
  }

  /** Removes the release of a removed app. */
  delete(id: string): void {
    this.#all.delete(id)
  }

  clear(): void {
    this.#all.clear()
  }
}

/** Returns a release's version if it is newer than the app's and the hub does not report that there is no update. */
export function newerThan({ version = null, update_available }: AppPatch, release: Release | undefined): string | null {
  if (release === undefined || update_available === false) return null
  const step = severityOf(version, release.version)
  return step === null || step === 'none' ? null : release.version
}
