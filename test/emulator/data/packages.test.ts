import { existsSync, lstatSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, test } from 'vitest'
import { compareVersions } from '../../../src/base/versions.ts'
import { copyApp } from '../../../src/emulator/data/app-folder.ts'
import { ManifestError } from '../../../src/emulator/data/manifest.ts'
import type { Offer, Packages } from '../../../src/emulator/data/packages.ts'
import { LIGHTS, manifestOf, offer, writeApp } from './apps.ts'
import { folder, opened } from './support.ts'

/** Creates a store and the packages of a hub; records the problems that they report. */
async function withStore() {
  const store = folder()
  const problems: string[] = []
  const data = await opened({ folder: join(folder(), 'data'), store, warn: (problem) => problems.push(problem) })
  return { ...data, store, problems }
}

function newestOf(packages: Packages): Offer {
  const found = packages.find({ id: LIGHTS })
  if (found === undefined) throw new Error('nothing found')
  return found
}

const tree = (path: string) => (existsSync(path) ? readdirSync(path, { recursive: true }).map(String).sort() : [])

test.each([
  ['1.0.0', '1.0', 0],
  ['1.0.0+1', '1.0.0+2', 0],
  ['1.10.0', '1.9.9', 1],
  ['2', '10', -1],
  ['1.0.0.1', '1.0.0', 1],
  ['1.0.0-beta', '1.0.0', -1],
  ['1.0.0-alpha', '1.0.0-beta', -1],
  ['1.0.0-beta.2', '1.0.0-beta.11', -1],
  ['1.0.0-beta.2', '1.0.0-beta', 1],
  ['1.0.0-1', '1.0.0-alpha', -1],
  ['1.0.1-alpha', '1.0.0', 1],
])('the order of versions of %s and %s', (one, other, order) => {
  expect(Math.sign(compareVersions(one, other))).toBe(order)
  expect(Math.sign(compareVersions(other, one))).toBe(order === 0 ? 0 : -order)
})

describe('the store', () => {
  it('offers the newest version of a channel, by its name on older and on newer hubs', async () => {
    const { packages, store } = await withStore()
    offer(store, '1.9.0')
    offer(store, '1.10.0')
    offer(store, '2.0.0-beta.1', { channel: 'beta' })
    offer(store, '2.0.0-alpha.9', { channel: 'alpha' })
    const versions = ['stable', 'beta', 'alpha', 'live', 'test', 'nightly'].map((channel) => [
      channel,
      packages.find({ id: LIGHTS, channel })?.version,
    ])
    expect(Object.fromEntries(versions)).toEqual({
      stable: '1.10.0',
      beta: '2.0.0-beta.1',
      alpha: '2.0.0-alpha.9',
      live: '1.10.0',
      test: '2.0.0-beta.1',
      nightly: undefined,
    })
  })

  it('finds a version in any channel unless one is named, and none that does not exist', async () => {
    const { packages, store } = await withStore()
    offer(store, '1.0.0')
    offer(store, '2.0.0', { channel: 'beta' })
    expect(packages.find({ id: LIGHTS })?.version).toBe('1.0.0')
    expect(packages.find({ id: LIGHTS, version: '2.0.0' })?.channel).toBe('beta')
    expect(packages.find({ id: LIGHTS, version: '2.0.0', channel: 'stable' })).toBeUndefined()
    expect(packages.find({ id: LIGHTS, version: '3.0.0' })).toBeUndefined()
    expect(packages.find({ id: 'com.example.other' })).toBeUndefined()
    expect(packages.find({ id: `../store/${LIGHTS}` })).toBeUndefined()
  })

  it('never offers an older version than the one that is installed', async () => {
    const { packages, store } = await withStore()
    offer(store, '1.0.0')
    offer(store, '1.1.0')
    const found = (present: string, version?: string) => packages.find({ id: LIGHTS, present, version })?.version
    expect([found('1.0.0'), found('1.1.0'), found('1.2.0')]).toEqual(['1.1.0', '1.1.0', undefined])
    expect([found('1.1.0', '1.0.0'), found('1.1.0', '1.1.0')]).toEqual([undefined, '1.1.0'])
  })

  it('leaves out an invalid version, reports it once, and offers the others', async () => {
    const { packages, store, problems } = await withStore()
    offer(store, '1.0.0')
    writeApp(join(store, LIGHTS, '2.0.0'), manifestOf({ version: '3.0.0' }))
    writeApp(join(store, LIGHTS, '4.0.0'), { id: LIGHTS })
    for (let twice = 0; twice < 2; twice++)
      expect(packages.find({ id: LIGHTS, channel: 'stable' })?.version).toBe('1.0.0')
    expect(problems.map((text) => text.replaceAll(store, 'STORE')).sort()).toEqual([
      `STORE/${LIGHTS}/2.0.0: contains ${LIGHTS} 3.0.0, not the version in its path`,
      expect.stringContaining(`STORE/${LIGHTS}/4.0.0/app.json: name: is missing`),
    ])
  })

  it('is empty if no folder is configured', async () => {
    const { packages } = await opened({})
    expect(packages.find({ id: LIGHTS, channel: 'stable' })).toBeUndefined()
  })
})

describe('the code of an app', () => {
  it('is a copy, so that neither the store nor another version can change it', async () => {
    const { packages, store, folder: data } = await withStore()
    const source = offer(store, '1.0.0')
    writeApp(source, manifestOf(), { 'lib/a.js': 'one', 'locales/en.json': '{}' })
    const found = newestOf(packages)
    const [one, other] = [await packages.unpack(found), await packages.unpack(found)]
    expect(one.folder).not.toBe(other.folder)
    expect(one.folder.startsWith(join(data, 'apps', LIGHTS, '1.0.0-'))).toBe(true)
    expect(one.manifest).toEqual(found.manifest)
    writeFileSync(join(source, 'lib/a.js'), 'two')
    expect(readFileSync(join(one.folder, 'lib/a.js'), 'utf8')).toBe('one')
    expect(tree(one.folder)).toEqual(['app.js', 'app.json', 'lib', 'lib/a.js', 'locales', 'locales/en.json'])
    await packages.discard(one.folder)
    expect([existsSync(one.folder), existsSync(other.folder)]).toEqual([false, true])
    await packages.discard(other.folder)
    expect(tree(join(data, 'apps'))).toEqual([])
  })

  it('stays in its folder if it came from the command line, and is never removed', async () => {
    const { packages } = await opened({})
    const path = writeApp(folder())
    expect(packages.adopt(path)).toEqual({ folder: path, manifest: expect.objectContaining({ id: LIGHTS }) })
    await packages.discard(path)
    expect(tree(path)).toEqual(['app.js', 'app.json'])
    expect(() => packages.adopt(join(path, 'nowhere'))).toThrow(ManifestError)
  })

  test.skipIf(process.platform === 'win32')(
    'may run in its folder with links inside of it, and with none that lead out of it',
    async () => {
      const { packages } = await opened({})
      const path = writeApp(folder(), manifestOf(), { 'lib/a.js': '' })
      for (const [name, target] of Object.entries({ own: 'lib/a.js', lib2: 'lib', all: '.', none: 'nothing' })) {
        symlinkSync(target, join(path, name))
      }
      expect(packages.adopt(path).folder).toBe(path)
      symlinkSync('../..', join(path, 'lib', 'out'))
      expect(() => packages.adopt(path)).toThrow(
        `${join(path, 'lib', 'out')}: a link that leads out of the app's folder`,
      )
    },
  )

  test.skipIf(process.platform === 'win32')('has files in place of links to its own files', async () => {
    const [source, target] = [writeApp(folder(), manifestOf(), { 'bin/tool.js': 'tool' }), join(folder(), 'copy')]
    symlinkSync('bin/tool.js', join(source, 'tool'))
    await copyApp(source, target)
    expect(lstatSync(join(target, 'tool')).isFile()).toBe(true)
    expect(readFileSync(join(target, 'tool'), 'utf8')).toBe('tool')
  })

  const hostile: [string, (source: string) => void][] = [
    ['a link out of it', (source) => symlinkSync('/etc/passwd', join(source, 'link'))],
    ['a link to its folder', (source) => symlinkSync('.', join(source, 'link'))],
    ['a link to nothing', (source) => symlinkSync('nowhere', join(source, 'link'))],
    ['a link to itself', (source) => symlinkSync('link', join(source, 'link'))],
  ]
  test.skipIf(process.platform === 'win32').each(hostile)('is refused with %s, and leaves nothing', async (_, harm) => {
    const { packages, store, folder: data } = await withStore()
    harm(offer(store, '1.0.0'))
    const found = newestOf(packages)
    await expect(packages.unpack(found)).rejects.toThrow(ManifestError)
    expect(tree(join(data, 'apps'))).toEqual([])
  })

  test.skipIf(process.platform === 'win32')('is refused with a socket in it', async () => {
    const source = writeApp(folder())
    const server = createServer().listen(join(source, 'door'))
    onTestFinished(() => void server.close())
    await new Promise((resolve) => server.once('listening', resolve))
    await expect(copyApp(source, join(folder(), 'copy'))).rejects.toThrow('not a file or folder')
  })

  test.each([
    ['bytes', { bytes: 99, entries: 100, depth: 9 }, 'more than 99 bytes'],
    ['files', { bytes: 9999, entries: 3, depth: 9 }, 'more than 3 files'],
    ['folders in folders', { bytes: 9999, entries: 100, depth: 2 }, 'more than 2 folders deep'],
  ])('is refused with too many %s', async (_, limits, reason) => {
    const source = writeApp(folder(), manifestOf(), { 'a/b/c/d.js': 'x'.repeat(100) })
    await expect(copyApp(source, join(folder(), 'copy'), limits)).rejects.toThrow(reason)
  })
})
