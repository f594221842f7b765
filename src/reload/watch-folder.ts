/** Notices what changes in a folder. It looks again and again: not every file system and mount tells by itself. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, sleep } from '../base/clock.ts'

/** How long a change may go unnoticed. */
export const LOOK_MS = 10_000

/** The files that count, of all names in the folder. */
type Choice = (names: readonly string[]) => readonly string[]

/** Calls `onChange` after files were added, removed or written, until the signal aborts. */
export async function watchFolder(
  folder: string,
  pick: Choice,
  onChange: () => void,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  let known = await look(folder, pick)
  for (;;) {
    await sleep(clock, LOOK_MS, signal)
    if (signal.aborted) return
    const now = await look(folder, pick)
    if (signal.aborted) return
    if (now !== known) onChange()
    known = now
  }
}

async function look(folder: string, pick: Choice): Promise<string> {
  try {
    const files = pick(await readdir(folder))
    return (await Promise.all(files.map((name) => stamp(join(folder, name)).then((at) => `${name} ${at}`)))).join('\n')
  } catch {
    // The reload says why it cannot be read.
    return 'unreadable'
  }
}

async function stamp(path: string): Promise<string> {
  try {
    const { mtimeMs, size, ino } = await stat(path)
    return `${mtimeMs} ${size} ${ino}`
  } catch {
    return 'unreadable'
  }
}
