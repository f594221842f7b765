/** Checks who may read a file with a secret. */
import { statSync } from 'node:fs'
import { dirname } from 'node:path'

const READ_BY_OTHERS = 0o004
const ENTER_BY_OTHERS = 0o001

/** Whether every user of this machine may read the file; a folder that they cannot enter protects it. */
export function isExposed(path: string): boolean {
  // Permissions of other systems do not show in the mode.
  if (process.platform === 'win32') return false
  try {
    return (statSync(path).mode & READ_BY_OTHERS) !== 0 && (statSync(dirname(path)).mode & ENTER_BY_OTHERS) !== 0
  } catch {
    return false
  }
}
