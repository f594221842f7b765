import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { newAppFolder } from '../../../src/emulator/processes/new-app.ts'
import { runProgram } from '../../support/process.ts'
import { running } from './support.ts'

const ID = 'com.example.greeter'

async function parent() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'new-app-'))
  onTestFinished(folder.remove)
  return folder.path
}

test('a new app passes its own test and runs', async () => {
  const folder = await newAppFolder(ID, join(await parent(), 'deep', 'greeter'))
  const { status, stdout } = await runProgram(process.execPath, ['--test'], { cwd: folder })
  expect(stdout).toMatch(/pass 2\n/)
  expect(status).toBe(0)
  const hub = await running(folder, { settings: { greeting: 'Hello' } })
  expect(
    await hub.apps.request(ID, { method: 'GET', path: '/greeting/Ada', query: new Map(), body: undefined }),
  ).toEqual({
    text: 'Hello, Ada!',
  })
  expect(hub.told).toEqual([['greeting', { text: 'Hello, Ada!' }]])
})

test('nothing is overwritten, and the id has to be one', async () => {
  const folder = await parent()
  await writeFile(join(folder, 'mine'), '')
  await expect(newAppFolder(ID, folder)).rejects.toThrow('is not empty')
  await expect(newAppFolder('../x', folder)).rejects.toThrow('the id has to be')
})
