/** Watches a folder of hubs by polling: not every file system and mount reports changes. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, sleep } from '../base/clock.ts'
import { hubFilesIn } from './hubs-dir.ts'

/** The polling interval. */
export const LOOK_MS = 10_000

interface Watched {
  readonly folder: string
  /** When its files were read last, in epoch milliseconds of the system, as the times of files are; default: just now. */
  readonly readAt?: number | undefined
}

/** Calls `onChange` after files were added, removed or written since `readAt`, until the signal aborts. */
export async function watchFolder(
  { folder, readAt = Number.POSITIVE_INFINITY }: Watched,
  onChange: () => void,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  let known = await look(folder)
  if (known.changedAt > readAt && !signal.aborted) onChange()
  for (;;) {
    await sleep(clock, LOOK_MS, signal)
    if (signal.aborted) return
    const now = await look(folder)
    if (signal.aborted) return
    if (now.stamps !== known.stamps) onChange()
    known = now
  }
}

/** A fingerprint of the folder, and the time of the last change in epoch milliseconds. */
interface Look {
  readonly stamps: string
  readonly changedAt: number
}

async function look(folder: string): Promise<Look> {
  try {
    // A file that comes or goes changes the folder, too.
    const { mtimeMs } = await stat(folder)
    const files = await Promise.all(hubFilesIn(await readdir(folder)).map((name) => lookAt(join(folder, name))))
    const changedAt = files.reduce((latest, file) => Math.max(latest, file.changedAt), mtimeMs)
    return { stamps: files.map(({ stamps }) => stamps).join('\n'), changedAt }
  } catch {
    // The reload says why it cannot be read.
    return { stamps: 'unreadable', changedAt: 0 }
  }
}

async function lookAt(file: string): Promise<Look> {
  try {
    const { mtimeMs, size, ino } = await stat(file)
    return { stamps: `${file} ${mtimeMs} ${size} ${ino}`, changedAt: mtimeMs }
  } catch {
    return { stamps: `${file} unreadable`, changedAt: 0 }
  }
}
