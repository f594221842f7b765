/** Data folders for the tests of what an emulated hub keeps. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type HubData, openHubData } from '../../../src/emulator/data/state.ts'

/** An empty folder, gone after the test. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'hub2mqtt-test-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** Open until the test ends, or is disposed of earlier. */
export async function opened(options: Parameters<typeof openHubData>[0]): Promise<HubData> {
  const data = await openHubData(options)
  onTestFinished(() => data[Symbol.asyncDispose]())
  return data
}
