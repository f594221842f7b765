/** Detects changes to the files of an app under development. */
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'

/** A fingerprint of each file, by path. Empty if the folder is gone. */
export type Files = ReadonlyMap<string, string>

const LOOK_MS = 250
/** Files beyond this number are not watched. */
export const MOST_FILES = 5000

/** Gets the changed files; none if the folder is gone. It is not called again before its promise is settled. */
type OnChange = (paths: readonly string[]) => Promise<void>

/**
 * Polls, because notifications of the file system differ between systems, get lost, and end if the folder is replaced.
 * Reports changes once two polls in a row agree.
 * @param known - The files that the app was started with.
 * @returns a function that ends it
 */
export function watchFiles(folder: string, known: Files, clock: Clock, onChange: OnChange): () => void {
  let told = known
  let last = known
  let ended = false
  let cancel = () => {}

  const look = async () => {
    const found = await filesIn(folder)
    const isSettled = changed(last, found).length === 0
    last = found
    const paths = isSettled && !ended ? changed(told, found) : []
    if (paths.length > 0) {
      told = found
      await onChange(found.size === 0 ? [] : paths)
    }
    later()
  }
  const later = () => {
    if (!ended) cancel = clock.after(LOOK_MS, () => void look())
  }
  later()
  return () => {
    ended = true
    cancel()
  }
}

function changed(before: Files, after: Files): string[] {
  const paths = new Set([...before.keys(), ...after.keys()])
  return [...paths].filter((path) => before.get(path) !== after.get(path))
}

/** Packages change only by `npm install`; hidden files and those with a tilde belong to editors and Git. */
const isLeftOut = (name: string) => name === 'node_modules' || name.startsWith('.') || name.endsWith('~')

/** The files in a folder, or in the part `below` of it, added to those found so far. */
export async function filesIn(folder: string, below = '', files = new Map<string, string>()): Promise<Files> {
  // A folder that cannot be read no longer exists.
  const entries = await readdir(join(folder, below), { withFileTypes: true }).catch(() => [])
  for (const entry of entries.filter(({ name }) => !isLeftOut(name))) {
    if (files.size >= MOST_FILES) break
    const path = below === '' ? entry.name : `${below}/${entry.name}`
    if (entry.isDirectory()) await filesIn(folder, path, files)
    else {
      const stat = await lstat(join(folder, path)).catch(() => undefined)
      // A file that replaces another may have the same size and time.
      if (stat !== undefined) files.set(path, `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}`)
    }
  }
  return files
}
