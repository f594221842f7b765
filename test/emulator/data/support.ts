/** Data folders, stores and apps for the tests of what an emulated hub keeps. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type HubData, type HubDataOptions, openHubData } from '../../../src/emulator/data/hub-data.ts'
import type { StoredApp } from '../../../src/emulator/data/state.ts'

export const LIGHTS = 'com.example.lights'

/** An empty folder, gone after the test. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'hub2mqtt-test-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** Open until the test ends, or is disposed of earlier. */
export async function opened(options: HubDataOptions): Promise<HubData> {
  const data = await openHubData(options)
  onTestFinished(() => data[Symbol.asyncDispose]())
  return data
}

export function storedApp(fields: Partial<StoredApp> = {}): StoredApp {
  return {
    id: LIGHTS,
    folder: '/apps/lights',
    version: '1.0.0',
    enabled: true,
    autoupdate: false,
    channel: 'stable',
    origin: 'appstore',
    crashed: false,
    crashedMessage: null,
    crashedCount: 0,
    exitCode: null,
    exitSignal: null,
    ...fields,
  }
}

export const manifestOf = (fields: Readonly<Record<string, unknown>> = {}) => ({
  id: LIGHTS,
  name: 'Lights',
  version: '1.0.0',
  ...fields,
})

/** Writes an app into a folder: its manifest, `app.js`, and what else is given by its path. */
export function writeApp(path: string, manifest: unknown = manifestOf(), files: Readonly<Record<string, string>> = {}) {
  const all = { 'app.json': JSON.stringify(manifest), 'app.js': 'export default () => {}\n', ...files }
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(join(path, name, '..'), { recursive: true })
    writeFileSync(join(path, name), text)
  }
  return path
}

/** Puts a version into a store. */
export function offer(store: string, version: string, fields: Readonly<Record<string, unknown>> = {}) {
  const manifest = manifestOf({ version, ...fields })
  return writeApp(join(store, manifest.id, version), manifest)
}
