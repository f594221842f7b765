import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type EmulateOptions, emulate, parseApiKey } from '../../src/emulator/command.ts'
import { loadHubFile } from '../../src/emulator/hub-file.ts'
import { ask } from './support.ts'

async function emulated(options: EmulateOptions) {
  const emulation = await emulate({ simulated: true, ...options })
  onTestFinished(() => emulation[Symbol.asyncDispose]())
  return emulation.hub
}

async function fileOf(text: string): Promise<string> {
  const folder = await mkdtempDisposable(join(tmpdir(), 'hub-'))
  onTestFinished(folder.remove)
  const path = join(folder.path, 'hub.yaml')
  await writeFile(path, text)
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
  test('is a key and its scopes, the key perhaps with equals signs of its own', () => {
    expect(parseApiKey('abc==:x=hub.app, homey.speech')).toEqual({
      key: 'abc==:x',
      scopes: ['hub.app', 'homey.speech'],
    })
    expect(parseApiKey('k=hub')).toEqual({ key: 'k', scopes: ['hub'] })
  })

  test.each([
    ['sEcReT', 'KEY=SCOPE,SCOPE'],
    ['=hub', 'KEY=SCOPE,SCOPE'],
    ['sEcReT=', 'no scope'],
    ['sEcReT=hub.app,hub.flow', 'unknown scope "hub.flow", known are hub, hub.app,'],
    ['sEc ReT=hub', 'visible ASCII'],
  ])('%s is refused with a reason that keeps the key to itself', (text, reason) => {
    expect(() => parseApiKey(text)).toThrow(reason)
    expect(() => parseApiKey(text)).not.toThrow(/sEc/)
  })
})

describe('a hub file', () => {
  test('declares the hub, in YAML or JSON', () => {
    const hub = loadHubFile(FILE, 'hub.yaml')
    expect(hub).toMatchObject({ id: 'hub-of-a-file', flavour: 'older', apps: [{ id: 'one.app' }] })
    expect(loadHubFile(JSON.stringify(hub), 'hub.json')).toEqual(hub)
    expect(loadHubFile('', 'empty.yaml')).toEqual({})
  })

  test.each([
    ['apps:\n  - name: x', 'hub.yaml: apps[0].id: is missing'],
    ['apps:\n  - id: 7', 'hub.yaml: apps[0].id: has to be a string'],
    ['apps: {}', 'hub.yaml: apps: has to be a list'],
    ['apps: [{id: a, usage: 3}]', 'hub.yaml: apps[0].usage: has to be an object'],
    ['apps: [{id: a}, {id: a}]', 'hub.yaml: apps: has the same app id twice'],
    ['flavor: older', 'hub.yaml: flavor: there is no such field'],
    ['flavour: old', 'hub.yaml: flavour: has to be one of older, newer, self-hosted, reference'],
    ['keys: {sEcReT: [hub.flow]}', 'hub.yaml: keys: has to be one of hub, hub.app,'],
    ['keys: {sEcReT: hub}', 'hub.yaml: keys: has to be a list'],
    ['id: "a\\nb"', 'hub.yaml: id: has to be visible ASCII'],
    ['- 1', 'hub.yaml: the file: has to be an object'],
    ['apps: [{id: a, settings: [1]}]', 'hub.yaml: apps[0].settings: has to be an object'],
    ['apps: [[]]', 'hub.yaml: apps[0]: has to be an object'],
    ['keys: [a]', 'hub.yaml: keys: has to be an object'],
    ['keys: {sEcReT: [', 'hub.yaml:1:17: not valid YAML or JSON'],
    ['a: &a [1]\nb: *a', 'aliases are not supported'],
  ])('%j is refused with a reason', (text, reason) => {
    expect(() => loadHubFile(text, 'hub.yaml')).toThrow(reason)
    expect(() => loadHubFile(text, 'hub.yaml')).not.toThrow(/sEcReT/)
  })
})

describe('emulate', () => {
  test('starts a hub from a file, with keys of the command line beside those of the file', async () => {
    const file = await fileOf(FILE)
    const hub = await emulated({ file, apiKeys: [{ key: 'mine', scopes: ['hub.app.readonly'] }] })
    expect(hub).toMatchObject({ id: 'hub-of-a-file', version: '7.7.7', flavour: 'older' })
    for (const key of ['mine', 'from-file'])
      expect((await ask(hub, 'GET /apps/app', { key })).json).toMatchObject({
        'one.app': { name: 'One', crashed: true, strange: true },
      })
    expect(hub.settings('one.app')).toEqual({ a: [1, null] })
  })

  test('lets what was typed win over the file', async () => {
    const hub = await emulated({ file: await fileOf(FILE), flavour: 'newer', apps: 20 })
    expect(hub.flavour).toBe('newer')
    expect(hub.apps.size).toBe(20)
  })

  test('adds up the scopes of a key given twice', async () => {
    const apiKeys = ['k=hub.app.readonly', 'k=hub.speech'].map(parseApiKey)
    const hub = await emulated({ apiKeys })
    expect((await ask(hub, 'GET /sessions/session/me', { key: 'k' })).json).toMatchObject({
      intersectedScopes: ['homey.app.readonly', 'homey.speech'],
    })
  })

  test('says which file it cannot read', async () => {
    await expect(emulate({ file: '/nowhere/hub.yaml' })).rejects.toThrow('cannot read the hub file /nowhere/hub.yaml')
  })
})
