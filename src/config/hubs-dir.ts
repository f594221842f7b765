/** Reads and watches a folder with one file per hub, `<name>.yaml`, `.yml` or `.json`, which has the hub's options. */
import { readdir, stat } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import * as v from 'valibot'
import { type Clock, sleep } from '../base/clock.ts'
import { type ConfigFile, readConfigFile, readFailure } from './file.ts'
import { EXPECTED_NAME, hubName } from './options.ts'
import type { Reading } from './read.ts'

/** Returns the names in a folder, or throws an error with a `code` such as `ENOENT`. */
export type ReadFolder = (path: string) => readonly string[]

const KINDS = ['.yaml', '.yml', '.json']

/** Ignores names that begin with a dot, and files of other kinds. */
function hubFilesIn(names: readonly string[]): string[] {
  return names.filter((name) => !name.startsWith('.') && KINDS.includes(extname(name))).toSorted()
}

/** Reads each file as if its options were below `hubs.<name>`. @param subject the option that names the folder */
export function readHubsDir(
  folder: string,
  subject: string,
  readFolder: ReadFolder,
  { readFile, mistakes }: Pick<Reading, 'readFile' | 'mistakes'>,
): (readonly [name: string, file: ConfigFile])[] {
  let names: string[]
  try {
    names = hubFilesIn(readFolder(folder))
  } catch (error) {
    mistakes.add(subject, `the folder that it names cannot be read: ${readFailure(error)}`)
    return []
  }
  return names.flatMap((entry) => {
    const path = join(folder, entry)
    const name = basename(entry, extname(entry))
    if (!v.is(hubName, name)) {
      mistakes.add(path, `${EXPECTED_NAME} before the extension`, 'hubs')
      return []
    }
    const file = readConfigFile(path, readFile, mistakes)
    if (file === undefined) return []
    const root = new Map([['hubs', new Map([[name, file.root]])]])
    return [[name, { ...file, root, where: (keys) => file.where(keys.slice(2)) }] as const]
  })
}

/** Milliseconds between checks of the folder. */
export const CHECK_MS = 10_000

/**
 * Watches a folder. Also reports changes since `readAt` (epoch milliseconds, like file times; default: now).
 * @param folder called at each check, because a reload may name another folder or none (`null`)
 * @param onChange returns whether the change was applied. If not, it is called again at each check, because the cause
 *   may be outside the folder: the file of a secret may still be missing, or the mode of a file may be wrong
 */
export async function watchFolder(
  { folder, readAt = Number.POSITIVE_INFINITY }: { folder: () => string | null; readonly readAt?: number | undefined },
  onChange: (isRetry: boolean) => boolean,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  let last = await readStamps(folder())
  let isRefused = last.changedAt > readAt && !signal.aborted && !onChange(false)
  for (;;) {
    await sleep(clock, CHECK_MS, signal)
    const now = await readStamps(folder())
    if (signal.aborted) return
    const isRetry = now.stamps === last.stamps
    if (!isRetry || isRefused) isRefused = !onChange(isRetry)
    last = now
  }
}

async function readStamps(folder: string | null) {
  try {
    if (folder === null) return { stamps: '', changedAt: 0 }
    // Adding or removing a file also changes the folder's modification time.
    const { mtimeMs } = await stat(folder)
    const paths = hubFilesIn(await readdir(folder)).map((name) => join(folder, name))
    const files = await Promise.all(paths.map((path) => stat(path).catch(() => undefined)))
    const stamps = files.map((file, at) => `${paths[at]} ${file?.mtimeMs} ${file?.size} ${file?.ino}`)
    return { stamps: stamps.join('\n'), changedAt: Math.max(mtimeMs, ...files.map((file) => file?.mtimeMs ?? 0)) }
  } catch {
    // The reload reports why the folder cannot be read.
    return { stamps: 'unreadable', changedAt: 0 }
  }
}
