import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it, test } from 'vitest'
import { type Manifest, ManifestError, parseManifest, readManifest } from '../../../src/emulator/data/manifest.ts'
import { manifestSchema } from '../../../src/tooling/docs/emulator.ts'
import { manifestOf, writeApp } from './apps.ts'
import { folder } from './support.ts'

const editorTakes = new Ajv2020({ strict: true }).compile(JSON.parse(manifestSchema()))

function read(manifest: unknown): { manifest: Manifest; warnings: string[] } {
  const warnings: string[] = []
  const text = typeof manifest === 'string' ? manifest : JSON.stringify(manifest)
  return { manifest: parseManifest(text, 'app.json', (warning) => warnings.push(warning)), warnings }
}

function mistake(task: () => unknown): string | undefined {
  try {
    task()
    return undefined
  } catch (error) {
    if (error instanceof ManifestError) return error.message
    throw error
  }
}

const mistakes = (manifest: unknown) => mistake(() => read(manifest))?.split('\n') ?? []

describe('app.json', () => {
  test.each<Record<string, unknown>>([
    { $schema: '../app.schema.json', description: 'It shines.', author: 'Somebody', color: '#4A6572', sdk: 3 },
    { id: 'com.athom.hue' },
    { id: 'A1.b_c-d.2' },
    { version: '0.1' },
    { version: '2.0.0-beta.1+7' },
    { main: 'src/app.mjs' },
    { main: 'dist/a.b/main.js' },
    { permissions: ['hub.app.readonly', 'homey.speech'], channel: 'alpha' },
    { settings: { night: { on: true }, names: ['a'] } },
  ])('is accepted, also by an editor: %j', (fields) => {
    expect(mistakes(manifestOf(fields))).toEqual([])
    expect(editorTakes(manifestOf(fields))).toBe(true)
  })

  test.each<[Record<string, unknown>, string]>([
    [{ id: undefined }, 'id: is missing'],
    [{ id: '' }, 'id: must not be empty'],
    [{ id: 'lights' }, 'id: must be parts'],
    [{ id: '../../etc' }, 'id: must be parts'],
    [{ id: 'com..example' }, 'id: must be parts'],
    [{ id: '.com.example' }, 'id: must be parts'],
    [{ id: 'com.example/+' }, 'id: must be parts'],
    [{ id: 'com.example\n' }, 'id: must be parts'],
    [{ id: `com.${'x'.repeat(200)}` }, 'id: is too long'],
    [{ name: ['Lights'] }, 'name: must be a string'],
    [{ version: 'newest' }, 'version: must be a version'],
    [{ version: '1.0.0/../..' }, 'version: must be a version'],
    [{ version: '1.0.0-..' }, 'version: must be a version'],
    [{ main: '../app.js' }, 'main: must be the path'],
    [{ main: '/etc/passwd' }, 'main: must be the path'],
    [{ main: 'a/../../b.js' }, 'main: must be the path'],
    [{ main: 'a\\b.js' }, 'main: must be the path'],
    [{ main: 'C:app.js' }, 'main: must be the path'],
    [{ permissions: ['hub.everything'] }, 'permissions[0]: must be one of'],
    [{ settings: [] }, 'settings: must be an object'],
    [{ settings: { '': 1 } }, 'settings.: the name must not be empty'],
    [{ settings: { ['x'.repeat(201)]: 1 } }, 'settings'],
    [{ settings: Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [i, 1])) }, 'settings: has more than 1000'],
    [{ color: 'red' }, 'color: must be a colour such as'],
    [{ channel: 'live' }, 'channel: must be "stable"'],
    [{ sdk: 0 }, 'sdk: '],
  ])('is refused, also by an editor: %j', (fields, reason) => {
    expect(mistakes(manifestOf(fields))[0]).toContain(`app.json: ${reason}`)
    expect(editorTakes(JSON.parse(JSON.stringify(manifestOf(fields))))).toBe(false)
  })

  test('is refused with a setting whose name would be ignored', () => {
    const [reason] = mistakes(manifestOf({ settings: { constructor: 1 } }))
    expect(reason).toContain('settings: has __proto__ or prototype or')
  })

  test('in the form of a real app is accepted, and an editor marks the fields that this hub ignores', () => {
    expect(editorTakes(manifestOf({ setings: {} }))).toBe(false)
    expect(editorTakes(manifestOf({ name: { en: 'Lights' } }))).toBe(false)
  })

  test.each(['', '{', 'null', '[]', '"text"'])('is refused with the text %j', (text) => {
    expect(mistakes(text)[0]).toMatch(/^app\.json: /)
  })
})

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
    const { manifest, warnings } = read(manifestOf(fields))
    expect(manifest).toEqual({ ...manifestOf(), main: 'app.js', permissions: [], channel: 'stable', ...wanted })
    expect(warnings).toEqual(
      ignored === undefined ? [] : [`com.example.lights 1.0.0: ignored fields in app.json: ${ignored}`],
    )
  })
})

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
    expect(mistakes(manifestOf(fields))).toEqual([expect.stringContaining(`app.json: ${mistake}`)])
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
    expect(mistakes(`{"__proto__":${JSON.stringify(manifestOf())}}`)).toHaveLength(3)
    expect(read(text(`"author":{"__proto__":{"name":"Evil"},"name":"Ada"}`)).manifest.author).toBe('Ada')
    expect(mistakes(text('"author":{"__proto__":{"name":"Evil"}}'))).toEqual(['app.json: author: must be a string'])
    expect(Object.prototype).not.toHaveProperty('permissions')
  })

  test('that is huge causes a short message', () => {
    const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`field${i}`, i]))
    const [warning = ''] = read(manifestOf({ ...many, ['x'.repeat(100_000)]: 1 })).warnings
    expect(warning).toMatch(/field19 and 99981 more$/)
    const [long = ''] = read(manifestOf({ ['x'.repeat(100_000)]: 1 })).warnings
    expect(long.length).toBeLessThan(200)
    const wrong = mistakes(manifestOf({ permissions: Array.from({ length: 100_000 }, () => 0) }))
    expect(wrong.length).toBeLessThan(30)
    expect(wrong.at(-1)).toBe('app.json: and 99980 more mistakes')
    const [longest = ''] = mistakes(manifestOf({ settings: { ['x'.repeat(100_000)]: 1 } }))
    expect(longest.length).toBeLessThan(1000)
  })
})

describe('the folder of an app', () => {
  it('is accepted with the module that its manifest names', () => {
    const path = writeApp(folder(), manifestOf({ main: 'src/main.js' }), { 'src/main.js': '' })
    expect(readManifest(path).main).toBe('src/main.js')
  })

  it('is refused without a manifest, or with one that is too large or not a regular file', () => {
    const path = folder()
    const file = join(path, 'app.json')
    expect(mistake(() => readManifest(path))).toBe(`${file}: cannot be read`)
    writeApp(path, manifestOf({ settings: { long: 'x'.repeat(1_100_000) } }))
    expect(mistake(() => readManifest(path))).toBe(`${file}: is larger than 1048576 bytes`)
    rmSync(file)
    symlinkSync('/dev/zero', file)
    expect(mistake(() => readManifest(path))).toBe(`${file}: is not a plain file`)
  })

  it('is refused if the module is missing, a folder, or a link that leads out of it', () => {
    const path = folder()
    const reason = () => mistake(() => readManifest(join(path, 'app')))?.split('app.json: ')[1]
    writeApp(join(path, 'app'))
    rmSync(join(path, 'app', 'app.js'))
    expect(reason()).toBe('main: there is no such file')
    mkdirSync(join(path, 'app', 'app.js'))
    expect(reason()).toBe('main: there is no such file')
    rmSync(join(path, 'app', 'app.js'), { recursive: true })
    writeFileSync(join(path, 'secret.js'), '')
    symlinkSync('../secret.js', join(path, 'app', 'app.js'))
    expect(reason()).toBe("main: leads out of the app's folder")
    writeApp(join(path, 'app'), manifestOf({ main: 'lib/app.js' }))
    writeApp(join(path, 'lib'))
    symlinkSync('../lib', join(path, 'app', 'lib'))
    expect(reason()).toBe("main: leads out of the app's folder")
  })
})
