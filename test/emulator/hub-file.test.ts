import { globSync, readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it, test } from 'vitest'
import { parse } from 'yaml'
import { loadHubFile } from '../../src/emulator/hub-file.ts'
import { hubFileSchema } from '../../src/tooling/docs/emulator.ts'

const editorTakes = new Ajv2020({ strict: true }).compile(JSON.parse(hubFileSchema()))

function loaderTakes(text: string): boolean {
  try {
    loadHubFile(text, 'hub.yaml')
    return true
  } catch {
    return false
  }
}

/** The example of the page, and each file of a hub that there is. */
const examples = [
  ...readFileSync('docs/emulator.md', 'utf8').matchAll(/```yaml\n(.*?)```/gs),
  ...globSync('config/demo/hub.yaml').map((path) => ['', readFileSync(path, 'utf8')]),
].map(([, text = '']) => text)

describe('the JSON Schema of a hub file', () => {
  it('takes what the loader takes of the examples: all of it', () => {
    expect(examples).toHaveLength(2)
    for (const text of examples) {
      expect(loaderTakes(text), text).toBe(true)
      expect(editorTakes(parse(text)), text).toBe(true)
    }
  })

  test.each([
    'flavour: newest',
    'keys: [a]',
    'keys: { "with blanks in it": [hub.app] }',
    'keys: { a: [hub.flow] }',
    'keys: { a: hub.app }',
    'id: "a b"',
    'apps: { id: a }',
    'apps: [{ name: without an id }]',
    'apps: [{ id: "" }]',
    'apps: [{ id: a, enabled: "yes" }]',
    'apps: [{ id: a, usage: { cpu: 1 } }]',
    'apps: [{ id: a, settings: [] }]',
    'apps: [{ id: a, setings: {} }]',
    'shop: []',
    '[]',
  ])('refuses %s, as the loader does', (text) => {
    expect(loaderTakes(text)).toBe(false)
    expect(editorTakes(parse(text))).toBe(false)
  })

  test.each(['keys: { a: [homey, hub.speech] }', 'apps: []', 'apps: [{ id: a, record: { updateAvailable: [1] } }]'])(
    'takes %s, as the loader does',
    (text) => {
      expect(loaderTakes(text)).toBe(true)
      expect(editorTakes(parse(text))).toBe(true)
    },
  )
})
