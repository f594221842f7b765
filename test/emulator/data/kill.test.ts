import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openHubData } from '../../../src/emulator/data/state.ts'
import { Process } from '../../support/process.ts'
import { offer } from './apps.ts'
import { killOften, WRITER } from './kill.ts'
import { folder } from './support.ts'

it('a data folder that another process uses is refused until that process has ended, even if it was killed', async () => {
  const [data, store] = [join(folder(), 'data'), folder()]
  for (const version of ['1.0.0', '2.0.0']) offer(store, version)
  await using hub = new Process(process.execPath, [WRITER, data, store, '0'])
  await hub.untilLine('"begin"')
  await expect(openHubData({ folder: data })).rejects.toThrow(`${data}: another hub uses this folder`)
  hub.signal('SIGKILL')
  await hub.closed
  await using opened = await openHubData({ folder: data })
  expect(opened.folder).toBe(data)
})

it('a hub that is killed while it writes has everything that it confirmed, nothing in part and nothing left over, however often it is killed', async () => {
  // Kill the hub until enough writes were tested. Even on a busy machine, about five writes happen before a kill.
  const figures = await killOften(
    40,
    ({ kills, confirmed, midway, swept }) => kills >= 8 && confirmed > 20 && midway > 0 && swept > 0,
  )
  expect(figures).toMatchObject({ faults: [], kills: expect.toSatisfy((kills) => kills < 40) })
})
