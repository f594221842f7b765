import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it, test } from 'vitest'
import { ManifestError, parseManifest, readManifest } from '../../../src/emulator/data/manifest.ts'
import { manifestSchema } from '../../../src/tooling/docs/emulator.ts'
import { manifestOf, writeApp } from './apps.ts'
import { folder } from './support.ts'

const editorTakes = new Ajv2020({ strict: true }).compile(JSON.parse(manifestSchema()))

function mistake(task: () => unknown): string | undefined {
  try {
    task()
    return undefined
  } catch (error) {
    if (error instanceof ManifestError) return error.message
    throw error
  }
}

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
    expect(mistake(() => parseManifest(JSON.stringify(manifestOf(fields)), 'app.json'))).toBeUndefined()
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
    const text = JSON.stringify(manifestOf(fields))
    expect(mistake(() => parseManifest(text, 'app.json'))).toContain(`app.json: ${reason}`)
    expect(editorTakes(JSON.parse(text))).toBe(false)
  })

  test('is refused with a setting whose name would be ignored', () => {
    const text = JSON.stringify(manifestOf({ settings: { constructor: 1 } }))
    expect(mistake(() => parseManifest(text, 'app.json'))).toContain('settings: has __proto__ or prototype or')
  })

  test('in the form of a real app is accepted, and an editor marks the fields that this hub ignores', () => {
    expect(editorTakes(manifestOf({ setings: {} }))).toBe(false)
    expect(editorTakes(manifestOf({ name: { en: 'Lights' } }))).toBe(false)
  })

  test.each(['', '{', 'null', '[]', '"text"'])('is refused with the text %j', (text) => {
    expect(mistake(() => parseManifest(text, 'app.json'))).toMatch(/^app\.json: /)
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
