import { expect, test } from 'vitest'
import { guardedHub } from '../../src/bridge/guarding.ts'
import type { CommandPolicy } from '../../src/contract/permissions.ts'
import { emulate, hold, listed } from '../hub/support.ts'

const never = { send: () => Promise.reject(new Error('no order')), memory: () => [] }
const ALL: CommandPolicy = { allow: [], deny: [], read_only: false }
const state = { sendEvent: () => {}, appChanged: () => {}, changed: () => {} }

test('the reason for a missing backup is logged, and none is requested that the configuration or the key forbids', async () => {
  const keys = { key: ['hub.app'], reader: ['hub.app.readonly', 'hub.system'], owner: ['hub'] }
  const hub = await emulate({ flavour: 'older', keys })
  const backUp = async (key: string, commands = {}) => {
    const held = hold(hub.url, { realtime: false, apiKey: () => key })
    await listed(held)
    return await guardedHub(held.hub, state, { ...never, policy: () => ({ ...ALL, ...commands }) }).backup()
  }
  const asked = () => hub.requests.filter(({ operation }) => operation === 'scheduleBackup').length
  expect(await backUp('key')).toBe('The API key lacks hub.system.')
  expect(await backUp('reader')).toBe('The API key lacks hub.app.')
  expect(await backUp('owner', { read_only: true })).toBe('commands.read_only is set.')
  expect(await backUp('owner', { deny: ['install'] })).toBe('commands.deny names install.')
  expect(asked()).toBe(0)
  expect(await backUp('owner')).toBeUndefined()
  expect(asked()).toBe(1)
})
