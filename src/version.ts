/** The version of this program, from the one place that states it. */
import { readFileSync } from 'node:fs'
import { ROOT } from './base/root.ts'

const manifest: unknown = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8'))

export const VERSION =
  typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : 'unknown'
