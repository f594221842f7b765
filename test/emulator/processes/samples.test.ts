import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type EmulateOptions, emulate, emulateProcesses } from '../../../src/emulator/command.ts'
import { readManifest } from '../../../src/emulator/data/manifest.ts'
import type { EmulatedHub, EmulatedHubOptions } from '../../../src/emulator/hub.ts'
import { until } from '../../support/until.ts'
import { folder } from '../data/support.ts'
import { acknowledged, ask, HUE, KEY, PUMP, sessionOf } from '../support.ts'

const METER = 'org.tidewater.meter'
const SAMPLES = 'config/demo/apps'

const HUB: EmulatedHubOptions = { keys: { [KEY]: ['hub'] }, flavour: 'older' }

const untilRuns = ({ apps }: EmulatedHub, id: string) => until(`${id} to run`, () => apps.get(id)?.state === 'running')

async function hubOf(options: EmulateOptions) {
  const running = await emulateProcesses(HUB, options)
  onTestFinished(() => running[Symbol.asyncDispose]())
  const { hub } = running
  return { hub, runs: (id: string) => untilRuns(hub, id), stop: () => running[Symbol.asyncDispose]() }
}

test('every sample app describes itself in two languages', async () => {
  for (const id of await readdir(SAMPLES)) {
    expect(readManifest(join(SAMPLES, id)).id).toBe(id)
    const languages = await readdir(join(SAMPLES, id, 'locales'))
    expect(languages).toHaveLength(2)
    for (const file of languages) {
      const texts: unknown = JSON.parse(await readFile(join(SAMPLES, id, 'locales', file), 'utf8'))
      expect(texts).toHaveProperty('title')
    }
  }
})

test('a new hub runs five sample apps, which clients and other apps can use, offers an update and more apps, and keeps them in its data folder', async () => {
  const data = folder()
  const { hub, runs, stop } = await hubOf({ data })
  for (const id of hub.apps.keys()) await runs(id)
  expect([...hub.apps.keys()]).toHaveLength(5)
  const listed = (await ask(hub, 'GET /apps/app')).text
  expect(listed.indexOf(HUE)).toBeLessThan(5)
  expect(hub.apps.get(PUMP)?.updateAvailable).toMatchObject({ version: '2.5.0' })
  expect((await ask(hub, `GET /apps/app/${HUE}/locale`)).json).toMatchObject({
    en: { title: 'Lumen Lights' },
    de: {},
  })

  // Make the meter read the other app every second.
  await ask(hub, `PUT /apps/app/${METER}/setting/interval`, { body: { value: 1 } })
  await ask(hub, `POST /apps/app/${METER}/restart`)
  for (const id of [HUE, PUMP, METER]) await runs(id)
  const session = await sessionOf(hub)
  const heard: unknown[] = []
  session.api.on(`homey:app:${HUE}`, (...event: unknown[]) => heard.push(event))
  session.api.on(`homey:app:${METER}`, (...event: unknown[]) => heard.push(event))
  expect(await acknowledged(session.api, 'subscribe', `homey:app:${HUE}`)).toEqual([null, null])
  expect((await ask(hub, `PUT /api/app/${HUE}/lights/hall`, { body: { on: true } })).json).toEqual({
    on: true,
    dim: 0.4,
  })
  expect((await ask(hub, `GET /api/app/${HUE}/lights/hall`)).json).toEqual({ on: true, dim: 0.4 })
  expect((await ask(hub, `GET /api/app/${HUE}/lights/attic`)).status).toBe(404)
  await until('the event', () => heard.length > 0)
  expect(heard).toEqual([['light', { name: 'hall', on: true, dim: 0.4 }]])

  await acknowledged(session.api, 'subscribe', `homey:app:${METER}`)
  await until('a reading of the other app', () => heard.length > 1)
  expect(heard[1]).toMatchObject(['reading', { watts: 790 }])

  expect((await ask(hub, 'POST /apps/store', { body: { id: PUMP } })).status).toBe(200)
  expect(hub.apps.get(PUMP)).toMatchObject({ version: '2.5.0', updateAvailable: null })
  expect((await ask(hub, 'POST /apps/store', { body: { id: 'io.bramblewood.blinds' } })).status).toBe(200)
  await runs('io.bramblewood.blinds')

  await ask(hub, `PUT /apps/app/${HUE}/setting/transition`, { body: { value: 250 } })
  await ask(hub, `PUT /apps/app/${PUMP}/disable`)
  await ask(hub, `DELETE /apps/app/${METER}`)
  await stop()
  const next = await hubOf({ data })
  expect(next.hub.id).toBe(hub.id)
  await next.runs(HUE)
  expect([...next.hub.apps.keys()][0]).toBe(HUE)
  expect(next.hub.apps.has(METER)).toBe(false)
  expect(next.hub.apps.get(PUMP)).toMatchObject({ version: '2.5.0', enabled: false, state: 'stopped' })
  expect((await ask(next.hub, `GET /apps/app/${HUE}/setting/transition`)).json).toBe(250)
})

test("a user's app runs in its own folder, in place of the samples", async () => {
  const { hub, runs } = await hubOf({ appFolders: [join(SAMPLES, 'nl.vandermolen.doorbell')] })
  await runs('nl.vandermolen.doorbell')
  expect([...hub.apps.values()]).toMatchObject([{ id: 'nl.vandermolen.doorbell', origin: 'devkit_run' }])
  await expect(emulateProcesses({}, { appFolders: ['config'] })).rejects.toMatchObject({ name: 'ManifestError' })
})

test('an operation that needs processes is refused for simulated apps', async () => {
  await expect(emulate({ simulated: true, data: 'x' })).rejects.toThrow('--data: has no effect on simulated apps')
})

test('a text that an app speaks is shown and passed to the command, one after the other, never as an option', async () => {
  const there = folder()
  const script = join(there, 'say.cjs')
  await writeFile(script, "require('node:fs').appendFileSync(process.argv[2], JSON.stringify(process.argv.slice(3)))")
  const said: string[] = []
  const { hub } = await hubOf({
    appFolders: [join(SAMPLES, 'com.athom.hue')],
    speechCommand: `${process.execPath} ${script} ${join(there, 'said')}`,
    onSpeak: (text) => said.push(text),
  })
  // The second text is too long for a command-line argument.
  const texts = ['hello; $(id)', 'x'.repeat(140_000), '--version']
  for (const text of texts) await ask(hub, 'POST /speech-output/say', { body: { text } })
  expect(said).toEqual(texts)
  const spoken = () => readFile(join(there, 'said'), 'utf8').catch(() => '')
  await until('both', async () => (await spoken()).includes('version'))
  expect(await spoken()).toBe('["hello; $(id)"][" --version"]')
})
