/** Data folders for the tests of an emulated hub's storage. */
import { onTestFinished } from 'vitest'
import { type HubData, openHubData } from '../../../src/emulator/data/state.ts'

export { temporaryFolder as folder } from '../../support/at-end.ts'

/** Open until the test ends, or until it is disposed of earlier. */
export async function opened(options: Parameters<typeof openHubData>[0]): Promise<HubData> {
  const data = await openHubData(options)
  onTestFinished(() => data[Symbol.asyncDispose]())
  return data
}
