/**
 * A hub that writes until the test kills it. Prints each write before the write begins, and again when it is confirmed.
 * Arguments: the data folder, the store, and the number of the round, which is part of every value.
 */
import { writeSync } from 'node:fs'
import { openHubData } from '../../../src/emulator/data/state.ts'
import { LIGHTS, storedApp } from './apps.ts'

const [folder = '', store = '', round = ''] = process.argv.slice(2)

/** Writes synchronously, so that no line is lost with the process, and as a whole, because the line is short. */
const say = (...line: ['begin' | 'done', key: string, value: unknown]) => writeSync(1, `${JSON.stringify(line)}\n`)

await using data = await openHubData({ folder, store })
const { state, packages } = data

/** @param value the value of the key after the write; `null` if the key is then missing */
async function confirmed(key: string, value: unknown, task: () => void | Promise<void>): Promise<void> {
  say('begin', key, value)
  await task()
  say('done', key, value)
}

for (let count = 0; ; count++) {
  const mark = `${round}.${count}`
  const name = `name ${count % 5}`
  await confirmed(name, mark, () => state.setSetting(LIGHTS, name, { mark, text: 'x'.repeat(3000) }))
  if (count % 7 === 3) await confirmed(name, null, () => state.unsetSetting(LIGHTS, name))
  const enabled = count % 2 === 0
  await confirmed('enabled', enabled, () => {
    const app = state.app('com.example.door') ?? storedApp({ id: 'com.example.door' })
    state.put({ ...app, enabled, crashedCount: count })
  })
  // Copying an app takes longer than the other writes, so copy only every fourth time.
  if (count % 4 !== 1) continue
  const version = count % 8 === 1 ? '1.0.0' : '2.0.0'
  await confirmed('installed', version, async () => {
    const former = state.app(LIGHTS)
    const offer = packages.find({ id: LIGHTS, version })
    if (offer === undefined) throw new Error('the store is empty')
    const unpacked = await packages.unpack(offer)
    state.put(storedApp({ folder: unpacked.folder, version, crashedMessage: version }))
    if (former !== undefined) await packages.discard(former.folder)
  })
  if (count % 16 === 13) {
    await confirmed('installed', null, async () => {
      const former = state.app(LIGHTS)
      state.remove(LIGHTS, { purgeSettings: false })
      if (former !== undefined) await packages.discard(former.folder)
    })
  }
}
