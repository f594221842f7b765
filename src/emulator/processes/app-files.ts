/** Detects changes to the files of an app under development. */
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'

/** Path → fingerprint of the file. Empty if the folder no longer exists. */
type Files = ReadonlyMap<string, string>

const POLL_MS = 250
/** Maximum number of watched files. Changes to further files are not detected. */
export const MAX_FILES = 5000

/** Receives the changed files, or an empty list if the folder no longer exists. Calls do not overlap. */
type OnChange = (paths: readonly string[]) => Promise<void>

/**
 * Polls, because file system notifications differ between systems, can get lost, and end if the folder is replaced.
 * Reports changes when two consecutive polls find the same files.
 * @param previous the files with which the app was started
 * @returns a function that stops the polling
 */
export function watchFiles(folder: string, previous: Files, clock: Clock, onChange: OnChange): () => void {
  let reported = previous
  let last = previous
  let ended = false
  let cancel = () => {}

  const poll = async () => {
    const found = await filesIn(folder)
    const isSettled = changed(last, found).length === 0
    last = found
    const paths = isSettled && !ended ? changed(reported, found) : []
    if (paths.length > 0) {
      reported = found
      await onChange(found.size === 0 ? [] : paths)
    }
    later()
  }
  const later = () => {
    if (!ended) cancel = clock.after(POLL_MS, () => void poll())
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

/** Skips packages, which only `npm install` changes, and hidden files and backups, which belong to editors and Git. */
const isIgnored = (name: string) => name === 'node_modules' || name.startsWith('.') || name.endsWith('~')

/** Adds the files in a folder, or in its subfolder `below`, to `files`. */
export async function filesIn(folder: string, below = '', files = new Map<string, string>()): Promise<Files> {
  // If a folder cannot be read, it probably no longer exists.
  const entries = await readdir(join(folder, below), { withFileTypes: true }).catch(() => [])
  for (const entry of entries.filter(({ name }) => !isIgnored(name))) {
    if (files.size >= MAX_FILES) break
    const path = below === '' ? entry.name : `${below}/${entry.name}`
    if (entry.isDirectory()) await filesIn(folder, path, files)
    else {
      const stat = await lstat(join(folder, path)).catch(() => undefined)
      // The inode reveals that a file was replaced with a file of the same size and time.
      if (stat !== undefined) files.set(path, `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}`)
    }
  }
  return files
}
