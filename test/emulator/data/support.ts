import { onTestFinished } from 'vitest'
import { type HubData, openHubData } from '../../../src/emulator/data/state.ts'

export { temporaryFolder as folder } from '../../support/at-end.ts'

/** Opens the hub's data. It is closed when the test ends, unless the test has disposed of it. */
export async function opened(options: Parameters<typeof openHubData>[0]): Promise<HubData> {
  const data = await openHubData(options)
  onTestFinished(() => data[Symbol.asyncDispose]())
  return data
}
