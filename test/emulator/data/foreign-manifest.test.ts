/** Tests manifests in the format of apps for real hubs, and hostile manifests. */
import { describe, expect, test } from 'vitest'
import { type Manifest, ManifestError, parseManifest } from '../../../src/emulator/data/manifest.ts'

function read(manifest: unknown): { manifest: Manifest; warnings: string[] } {
  const warnings: string[] = []
  const text = typeof manifest === 'string' ? manifest : JSON.stringify(manifest)
  return { manifest: parseManifest(text, 'app.json', (warning) => warnings.push(warning)), warnings }
}

const own = { id: 'com.example.lights', name: 'Lights', version: '1.0.0' }

describe('a manifest in the form of apps for real hubs', () => {
  test.each<[Record<string, unknown>, Partial<Manifest>, string | undefined]>([
    [{}, {}, undefined],
    [{ name: { nl: 'Lampen', de: 'Lampen' } }, { name: 'Lampen' }, undefined],
    [{ name: { en: 7, nl: 'Lampen' } }, { name: 'Lampen' }, undefined],
    [{ author: { name: 'Ada', email: 'a@b.c' } }, { author: 'Ada' }, undefined],
    [{ description: { nl: 'Licht', en: 'Light' } }, { description: 'Light' }, undefined],
    [{ color: '#112233', brandColor: '#445566' }, { color: '#112233' }, undefined],
    [{ brandColor: 'red' }, {}, 'brandColor'],
    [{ brandColor: { en: 1 } }, {}, 'brandColor'],
    [
      { permissions: ['homey:manager:ledring', 'hub.app'] },
      { permissions: ['hub.app'] },
      'permission homey:manager:ledring',
    ],
    [{ setings: {} }, {}, 'setings'],
    [{ _comment: 'x', esm: true, drivers: [], sdk: 3 }, { sdk: 3 }, '_comment, esm, drivers'],
    [{ constructor: 1, toString: 2, hasOwnProperty: 3 }, {}, 'constructor, toString, hasOwnProperty'],
  ])('%j', (fields, wanted, ignored) => {
    const { manifest, warnings } = read({ ...own, ...fields })
    expect(manifest).toEqual({ ...own, main: 'app.js', permissions: [], channel: 'stable', ...wanted })
    expect(warnings).toEqual(
      ignored === undefined ? [] : [`com.example.lights 1.0.0: ignored fields in app.json: ${ignored}`],
    )
  })
})

function mistakes(manifest: unknown): string[] {
  try {
    read(manifest)
  } catch (error) {
    if (error instanceof ManifestError) return error.message.split('\n')
    throw error
  }
  return []
}

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
const text = (fields: string) => `{"id":"com.example.lights","name":"Lights","version":"1.0.0",${fields}}`

describe('a hostile manifest', () => {
  test.each<[string, Record<string, unknown>, string]>([
    ['a name in no language', { name: {} }, 'name: must be a string'],
    ['a name without text', { name: { en: 7 } }, 'name: must be a string'],
    ['an empty name', { name: { en: '' } }, 'name: must not be empty'],
    ['a long name', { name: { en: 'x'.repeat(201) } }, 'name: is too long'],
    ['an id by language', { id: { en: 'com.example.lights' } }, 'id: must be a string'],
    ['a version as a number', { version: 1 }, 'version: must be a string'],
    ['an author without a name', { author: { email: 'a@b.c' } }, 'author: must be a string'],
    ['permissions by name', { permissions: { 'homey:manager:api': true } }, 'permissions: must be a list'],
    ['invalid permissions', { permissions: [7] }, 'permissions[0]: must be one of'],
    ['a setting without a usable name', { settings: { 'a\0b': 1 } }, 'settings.a\0b: the name must be plain text'],
    ['a broken setting name', { settings: { '\ud800': 1 } }, 'settings.\ud800: the name must be plain text'],
    ['a large setting', { settings: { big: 'x'.repeat(300_000) } }, 'settings.big: is too large or nested too deeply'],
  ])('is refused for %s', (_name, fields, mistake) => {
    expect(mistakes({ ...own, ...fields })).toEqual([expect.stringContaining(`app.json: ${mistake}`)])
  })

  test('may be nested to any depth in ignored fields, but not in settings', () => {
    expect(read(text(`"flow":${nested(200_000)}`)).manifest.name).toBe('Lights')
    expect(mistakes(text(`"settings":{"a":${nested(200_000)}}`))).toEqual([
      'app.json: settings.a: is too large or nested too deeply',
    ])
    expect(read(text(`"settings":{"a":${nested(50)}}`)).manifest.settings).toHaveProperty('a')
    expect(mistakes(nested(200_000))).toHaveLength(1)
    expect(mistakes(text(`"name":${nested(200_000)}`))).toHaveLength(1)
  })

  test('does not affect a prototype', () => {
    const proto = '{"permissions":["hub"],"name":"Evil","settings":{"a":1},"color":"#000000"}'
    const { manifest, warnings } = read(text(`"__proto__":${proto}`))
    expect(manifest).toMatchObject({ name: 'Lights', permissions: [] })
    expect(manifest).not.toHaveProperty('color')
    expect(warnings).toEqual(['com.example.lights 1.0.0: ignored fields in app.json: __proto__'])
    expect(mistakes(`{"__proto__":${JSON.stringify(own)}}`)).toHaveLength(3)
    expect(read(text(`"author":{"__proto__":{"name":"Evil"},"name":"Ada"}`)).manifest.author).toBe('Ada')
    expect(mistakes(text('"author":{"__proto__":{"name":"Evil"}}'))).toEqual(['app.json: author: must be a string'])
    expect(Object.prototype).not.toHaveProperty('permissions')
  })

  test('that is huge causes a short message', () => {
    const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`field${i}`, i]))
    const [warning = ''] = read({ ...own, ...many, ['x'.repeat(100_000)]: 1 }).warnings
    expect(warning).toMatch(/field19 and 99981 more$/)
    const [long = ''] = read({ ...own, ['x'.repeat(100_000)]: 1 }).warnings
    expect(long.length).toBeLessThan(200)
    const wrong = mistakes({ ...own, permissions: Array.from({ length: 100_000 }, () => 0) })
    expect(wrong.length).toBeLessThan(30)
    expect(wrong.at(-1)).toBe('app.json: and 99980 more mistakes')
    const [longest = ''] = mistakes({ ...own, settings: { ['x'.repeat(100_000)]: 1 } })
    expect(longest.length).toBeLessThan(1000)
  })
})
