/** Apps and stores for tests. This module does not import Vitest, because programs use the module too. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newApp, type StoredApp } from '../../../src/emulator/data/state.ts'

export const LIGHTS = 'com.example.lights'

export function storedApp(fields: Partial<StoredApp> = {}): StoredApp {
  const stored = { id: LIGHTS, folder: '/apps/lights', version: '1.0.0', channel: 'stable', origin: 'appstore' }
  return newApp({ ...stored, autoupdate: false, ...fields })
}

export const manifestOf = (fields: Readonly<Record<string, unknown>> = {}) => ({
  id: LIGHTS,
  name: 'Lights',
  version: '1.0.0',
  ...fields,
})

/** Writes an app into a folder: its manifest, `app.js`, and other files by their paths. */
export function writeApp(path: string, manifest: unknown = manifestOf(), files: Readonly<Record<string, string>> = {}) {
  const all = { 'app.json': JSON.stringify(manifest), 'app.js': 'export default () => {}\n', ...files }
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(join(path, name, '..'), { recursive: true })
    writeFileSync(join(path, name), text)
  }
  return path
}

export function offer(store: string, version: string, fields: Readonly<Record<string, unknown>> = {}) {
  const manifest = manifestOf({ version, ...fields })
  return writeApp(join(store, manifest.id, version), manifest)
}
