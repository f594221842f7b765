/** Makes what was written survive a power failure. */
import { closeSync, fsyncSync, openSync } from 'node:fs'

/** The names in a folder. Windows opens no folders, and keeps them by itself. */
export function syncFolder(path: string): void {
  if (process.platform === 'win32') return
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
