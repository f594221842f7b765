import { lstat, readdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import packageJson from '../../../package.json' with { type: 'json' }
import { newAppFolder } from '../../../src/emulator/processes/new-app.ts'
import { execute, runProgram } from '../../support/process.ts'
import { folder as parent } from '../data/support.ts'
import { running } from './support.ts'

const ID = 'com.example.greeter'
const TSC = 'node_modules/typescript/bin/tsc'

async function replaceIn(path: string, text: string, other: string): Promise<void> {
  const before = await readFile(path, 'utf8')
  expect(before).toContain(text)
  await writeFile(path, before.replace(text, other))
}

test('a new app runs', async () => {
  const folder = await newAppFolder(ID, join(parent(), 'deep', 'greeter'))
  const hub = await running(folder, { settings: { greeting: 'Hello' } })
  expect(await hub.apps.request(ID, { method: 'GET', path: '/greeting/Ada', query: {}, body: undefined })).toEqual({
    text: 'Hello, Ada!',
  })
  expect(hub.emitted).toEqual([['greeting', { text: 'Hello, Ada!' }]])
})

test('a new app has the types of its hub, in its code and in its test', async () => {
  const folder = await newAppFolder(ID, join(parent(), 'greeter'))
  // Use the types of Node.js, which editors provide.
  const types = ['--maxNodeModuleJsDepth', '0', '--types', 'node', '--typeRoots', resolve('node_modules/@types')]
  await replaceIn(join(folder, 'app.js'), "app.on('stop'", "app.on('end'")
  await replaceIn(join(folder, 'app.test.js'), 'app.emitted', 'app.omitted')
  const project = ['--noEmit', '--project', join(folder, 'jsconfig.json')]
  const { stdout } = await runProgram(process.execPath, [TSC, ...project, ...types])
  // The compiler must find only the two mistakes.
  expect(stdout.split('\n').filter((line) => line.includes('error'))).toEqual([
    expect.stringMatching(/app\.js.*'"end"'/),
    expect.stringMatching(/app\.test\.js.*'omitted'/),
  ])
})

test('npm keeps the installed packages, as copies, and sends no request to a registry', async () => {
  const folder = await newAppFolder(ID, join(parent(), 'greeter'))
  const npm = (...args: readonly string[]) =>
    execute('npm', [...args, '--registry', 'http://127.0.0.1:9'], { cwd: folder })
  const files = async () => (await readdir(join(folder, 'node_modules/hub2mqtt'))).sort()
  const before = await files()
  for (const command of ['install', 'ci']) {
    await npm(command)
    expect(await files()).toEqual(before)
    expect((await lstat(join(folder, 'node_modules/hub2mqtt'))).isDirectory()).toBe(true)
  }
})

test('the development package of a new app has the same version and exports', async () => {
  const sdk: unknown = JSON.parse(await readFile('src/emulator/sdk/package.json', 'utf8'))
  const { './package.json': _, ...exports } = packageJson.exports
  expect(sdk).toMatchObject({
    name: packageJson.name,
    version: packageJson.version,
    exports: JSON.parse(JSON.stringify(exports).replaceAll('./src/emulator/sdk/', './')),
  })
})

test('nothing is overwritten, and the id must be valid', async () => {
  const folder = parent()
  await writeFile(join(folder, 'mine'), '')
  await expect(newAppFolder(ID, folder)).rejects.toThrow('is not empty')
  await expect(newAppFolder('../x', folder)).rejects.toThrow('the id must be')
})
