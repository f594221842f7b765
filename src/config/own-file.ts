/** Atomically writes hub2mqtt's own files, such as the configuration file that the setup creates. */
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { access, lstat, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { systemCode } from '../base/failures.ts'
import { readPlainText } from '../base/read-plain.ts'

/** Returns whether the folder is writable, and the file does not exist or belongs to the current user. */
export async function isOurs(path: string): Promise<boolean> {
  try {
    await access(dirname(path), constants.W_OK | constants.X_OK)
    const found = await lstat(path).catch(orMissing)
    if (found === undefined) return true
    // Reject symbolic links, because another program may manage the target.
    return found.isFile() && (process.getuid === undefined || found.uid === process.getuid())
  } catch {
    return false
  }
}

/** Returns an empty string if the file does not exist. */
export function textOf(path: string): string {
  try {
    return readPlainText(path)
  } catch (error) {
    return orMissing(error) ?? ''
  }
}

/** Writes a file that only its owner can read. @throws file system errors; the previous file is then unchanged */
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
