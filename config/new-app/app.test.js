import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApp } from 'hub2mqtt/sdk/testing'
import start from './app.js'

test('greets with the setting and emits an event', async () => {
  const app = await startApp(start, { settings: { greeting: 'Good morning' } })
  assert.deepEqual(await app.get('/greeting/Ada'), { text: 'Good morning, Ada!' })
  assert.deepEqual(app.emitted, [['greeting', { text: 'Good morning, Ada!' }]])
})

test('applies a new greeting while it runs', async () => {
  const app = await startApp(start, { settings: { greeting: 'Hello' } })
  app.setSetting('greeting', 'Goodbye')
  assert.deepEqual(await app.get('/greeting/Ada'), { text: 'Goodbye, Ada!' })
})
