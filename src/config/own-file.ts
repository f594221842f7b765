/** Files that are ours to write, such as that of a set-up: whether one is, and writing it as a whole or not at all. */
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { access, lstat, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { systemCode } from '../base/failures.ts'
import { readPlainText } from '../base/read-plain.ts'

/** Whether there is no such file, or one of our own user; and its folder takes new files. */
export async function isOurs(path: string): Promise<boolean> {
  try {
    await access(dirname(path), constants.W_OK | constants.X_OK)
    const found = await lstat(path).catch(orMissing)
    if (found === undefined) return true
    // Ignore symbolic links: another program manages the target.
    return found.isFile() && (process.getuid === undefined || found.uid === process.getuid())
  } catch {
    return false
  }
}

/** The file's text; empty if there is no file. */
export function textOf(path: string): string {
  try {
    return readPlainText(path)
  } catch (error) {
    return orMissing(error) ?? ''
  }
}

/** Readable for its owner only. @throws what the file system says; the file of before is still there then */
export async function writeWhole(path: string, text: string): Promise<void> {
  const draft = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`)
  try {
    await using file = await open(draft, 'wx', 0o600)
    await file.writeFile(text)
    await file.sync()
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

function orMissing(error: unknown): undefined {
  if (systemCode(error) === 'ENOENT') return undefined
  throw error
}
