/** The releases of a hub's apps in the public store, which supply the newest version if the hub does not report it. */
import { severityOf } from '../base/versions.ts'
import type { App, AppList, AppPatch, Apps } from './app.ts'

export interface Release {
  readonly version: string
  /** One line of plain text, limited to the length that Home Assistant accepts. */
  readonly changelog: string | null
}

const MAX_RELEASES = 5_000

export class Releases {
  /** The releases by app id. `isNamed` is `true` if the hub itself reports the newest version. */
  readonly all = new Map<string, { readonly release: Release; readonly isNamed: boolean }>()

  /** Records an app's release. Returns the patch for the app; `undefined` if the release has not changed. */
  learn(id: string, release: Release | undefined, app: App | undefined): AppPatch | undefined {
    const cached = this.all.get(id)
    if (cached?.release === release || (cached === undefined && this.all.size >= MAX_RELEASES)) return undefined
    const isNamed = cached?.isNamed ?? (app?.latest_version ?? null) !== null
    if (release === undefined) this.all.delete(id)
    else this.all.set(id, { release, isNamed })
    return isNamed || app === undefined ? {} : { latest_version: newerThan(app, release) }
  }

  /** Adds the newest version to a hub's patch for an app. */
  fill(id: string, patch: AppPatch, app: App | undefined): AppPatch {
    const { release } = this.all.get(id) ?? {}
    if (release === undefined || patch.latest_version === undefined) return patch
    const isNamed = patch.latest_version !== null
    this.all.set(id, { release, isNamed })
    return isNamed ? patch : { ...patch, latest_version: newerThan({ ...app, ...patch }, release) }
  }

  fillAll(list: AppList, apps: Apps): AppList {
    return new Map([...list].map(([id, patch]) => [id, patch && this.fill(id, patch, apps.get(id))] as const))
  }
}

/** Returns the release's version if it is newer than the app's version, unless the hub reports no update. */
export function newerThan({ version = null, update_available }: AppPatch, release: Release | undefined): string | null {
  if (release === undefined || update_available === false) return null
  const step = severityOf(version, release.version)
  return step === null || step === 'none' ? null : release.version
}
