import { globSync, readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { loadHubFile } from '../../src/emulator/hub-file.ts'
import { hubFileSchema } from '../../src/tooling/docs/emulator.ts'

const editorTakes = new Ajv2020({ strict: true }).compile(JSON.parse(hubFileSchema()))

/** Returns why the loader rejects a file; `undefined` if it accepts the file. */
function mistake(text: string): string | undefined {
  try {
    loadHubFile(text, 'hub.yaml')
    return undefined
  } catch (error) {
    return String(error)
  }
}

/** The example of the documentation and, if it exists, the demo's hub file. */
const examples = [
  ...readFileSync('docs/emulator.md', 'utf8').matchAll(/```yaml\n(.*?)```/gs),
  ...globSync('config/demo/hub.yaml').map((path) => ['', readFileSync(path, 'utf8')]),
].map(([, text = '']) => text)

describe('a hub file', () => {
  test('declares the hub, in YAML or JSON', () => {
    const text = 'id: a-hub\nflavour: older\nkeys: { k: [hub.app, homey.speech] }\napps: [{ id: one.app }]\n'
    const hub = loadHubFile(text, 'hub.yaml')
    expect(hub).toMatchObject({ id: 'a-hub', flavour: 'older', apps: [{ id: 'one.app' }] })
    expect(loadHubFile(JSON.stringify(hub), 'hub.json')).toEqual(hub)
    expect(loadHubFile('', 'empty.yaml')).toEqual({})
  })

  test('keeps settings of any name', () => {
    const settings = JSON.parse('{"constructor": 1, "prototype": 2, "__proto__": 3}')
    const text = JSON.stringify({ apps: [{ id: 'one.app', settings }] })
    expect(JSON.stringify(loadHubFile(text, 'hub.json'))).toBe(text)
  })

  test('is accepted by the loader and by an editor in all examples', () => {
    expect(examples).toHaveLength(2)
    for (const text of examples) {
      expect(mistake(text), text).toBeUndefined()
      expect(editorTakes(parse(text)), text).toBe(true)
    }
  })

  test.each([
    ['apps:\n  - name: x', 'apps[0].id: is missing'],
    ['apps:\n  - id: 7', 'apps[0].id: must be a string'],
    ['apps: [{ id: "" }]', 'apps[0].id: must be an app id'],
    ['apps: {}', 'apps: must be a list'],
    ['apps: [[]]', 'apps[0]: must be an object'],
    ['apps: [{ id: a, enabled: "yes" }]', 'apps[0].enabled: must be a boolean'],
    ['apps: [{id: a, usage: 3}]', 'apps[0].usage: must be an object'],
    ['apps: [{ id: a, usage: { cpu: 1 } }]', 'apps[0].usage.mem: is missing'],
    ['apps: [{ id: a, settings: [] }]', 'apps[0].settings: must be an object'],
    ['apps: [{ id: a, setings: {} }]', 'apps[0].setings: unknown field'],
    ['flavor: older', 'flavor: unknown field'],
    ['flavour: old', 'flavour: must be one of older, newer, self-hosted, reference'],
    ['keys: {sEcReT: [hub.flow]}', 'keys: must be one of hub, hub.app,'],
    ['keys: {sEcReT: hub}', 'keys: must be a list'],
    ['keys: { "sEcReT with blanks in it": [hub.app] }', 'keys: a key must be visible ASCII characters'],
    ['keys: [a]', 'keys: must be an object'],
    ['id: "a\\nb"', 'id: must be visible ASCII'],
    ['[]', 'the file: must be an object'],
  ])('%j is refused with a reason that does not contain keys, and by an editor too', (text, reason) => {
    expect(mistake(text)).toContain(`hub.yaml: ${reason}`)
    expect(mistake(text)).not.toContain('sEcReT')
    expect(editorTakes(parse(text))).toBe(false)
  })

  test.each([
    ['apps: [{id: a}, {id: a}]', 'hub.yaml: apps: contains an app id twice'],
    ['keys: {sEcReT: [', 'hub.yaml:1:17: not valid YAML or JSON'],
    ['a: &a [1]\nb: *a', 'aliases are not supported'],
  ])('%j is refused with a reason that does not contain keys', (text, reason) => {
    expect(mistake(text)).toContain(reason)
    expect(mistake(text)).not.toContain('sEcReT')
  })

  test.each(['keys: { a: [homey, hub.speech] }', 'apps: []', 'apps: [{ id: a, record: { updateAvailable: [1] } }]'])(
    '%s is accepted, and by an editor too',
    (text) => {
      expect(mistake(text)).toBeUndefined()
      expect(editorTakes(parse(text))).toBe(true)
    },
  )
})
