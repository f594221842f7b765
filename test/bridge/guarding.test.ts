import { expect, test } from 'vitest'
import { guardedHub } from '../../src/bridge/guarding.ts'
import { emulate, hold, listed } from '../hub/support.ts'

const never = { send: () => Promise.reject(new Error('no order')), memory: () => [] }
const state = { sendEvent: () => {}, appChanged: () => {}, changed: () => {} }

test('why there is no backup is said in the words of the hub, and nothing where there is one', async () => {
  const keys = { key: ['hub.app'], owner: ['hub'] }
  const { url } = await emulate({ flavour: 'older', keys })
  const backUp = async (key: string) => {
    const held = hold(url, { realtime: false, apiKey: () => key })
    await listed(held)
    return await guardedHub(held.hub, state, never).backup()
  }
  expect(await backUp('key')).toMatch(/hub\.system|permission|scope/i)
  expect(await backUp('owner')).toBeUndefined()
})
