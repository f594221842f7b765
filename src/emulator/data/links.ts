/** Links in the folder of an app. Node's permission model follows them, so one that leads out would open what it leads to. */
import { readdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { isBelow, ManifestError } from './manifest.ts'

/** @throws ManifestError naming the first link that leads out of the folder */
export function refuseLinksOut(folder: string): void {
  const root = realpathSync(folder)
  for (const link of linksIn(folder)) {
    const target = targetOf(link)
    if (target !== undefined && target !== root && !isBelow(root, target)) {
      throw new ManifestError(`${link}: a link that leads out of the app's folder`)
    }
  }
}

function linksIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isSymbolicLink()) return [path]
    return entry.isDirectory() ? linksIn(path) : []
  })
}

/** Nothing for a link to nothing. */
function targetOf(link: string): string | undefined {
  try {
    return realpathSync(link)
  } catch {
    return undefined
  }
}
