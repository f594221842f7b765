import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type EmulateOptions, emulate } from '../../src/emulator/command.ts'
import { parseApiKey } from '../../src/emulator/scopes.ts'
import { folder } from './data/support.ts'
import { ask } from './support.ts'

async function emulated(options: EmulateOptions) {
  const emulation = await emulate({ simulated: true, ...options })
  onTestFinished(() => emulation[Symbol.asyncDispose]())
  return emulation.hub
}

function fileOf(text: string): string {
  const path = join(folder(), 'hub.yaml')
  writeFileSync(path, text)
  return path
}

const FILE = `
id: hub-of-a-file
version: 7.7.7
flavour: older
keys:
  from-file: [hub.app, homey.speech]
apps:
  - id: one.app
    name: One
    crashed: 'Error: x'
    settings: { a: [1, null] }
    record: { strange: true }
store:
  - id: two.app
`

describe('--api-key', () => {
  test('is a key and its scopes; the key may contain equals signs', () => {
    expect(parseApiKey('abc==:x=hub.app, homey.speech')).toEqual({
      key: 'abc==:x',
      scopes: ['hub.app', 'homey.speech'],
    })
    expect(parseApiKey('k=hub')).toEqual({ key: 'k', scopes: ['hub'] })
  })

  test.each([
    ['sEcReT', 'KEY=SCOPE,SCOPE'],
    ['=hub', 'KEY=SCOPE,SCOPE'],
    ['sEcReT=', 'expected a scope'],
    ['sEcReT=hub.app,hub.flow', 'unknown scope "hub.flow"; expected one of hub, hub.app,'],
    ['sEc ReT=hub', 'visible ASCII'],
  ])('%s is refused with a reason that does not contain the key', (text, reason) => {
    expect(() => parseApiKey(text)).toThrow(reason)
    expect(() => parseApiKey(text)).not.toThrow(/sEc/)
  })
})

describe('emulate', () => {
  test('starts a hub from a file, with keys of the command line in addition to those of the file', async () => {
    const file = fileOf(FILE)
    const hub = await emulated({ file, apiKeys: [{ key: 'mine', scopes: ['hub.app.readonly'] }] })
    expect(hub).toMatchObject({ id: 'hub-of-a-file', version: '7.7.7', flavour: 'older' })
    for (const key of ['mine', 'from-file'])
      expect((await ask(hub, 'GET /apps/app', { key })).json).toMatchObject({
        'one.app': { name: 'One', crashed: true, strange: true },
      })
    expect(hub.settings('one.app')).toEqual({ a: [1, null] })
  })

  test('prefers options of the command line to the file', async () => {
    const hub = await emulated({ file: fileOf(FILE), flavour: 'newer', apps: 20 })
    expect(hub.flavour).toBe('newer')
    expect(hub.apps.size).toBe(20)
  })

  test('combines the scopes of a key that is given twice', async () => {
    const apiKeys = ['k=hub.app.readonly', 'k=hub.speech'].map(parseApiKey)
    const hub = await emulated({ apiKeys })
    expect((await ask(hub, 'GET /sessions/session/me', { key: 'k' })).json).toMatchObject({
      intersectedScopes: ['homey.app.readonly', 'homey.speech'],
    })
  })
})
