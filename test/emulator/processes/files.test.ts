/** Tests that `emulate --app` shows the app's output line by line, and restarts the app when its files change. */
import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import { emulate } from '../../../src/emulator/command.ts'
import { filesIn, MAX_FILES } from '../../../src/emulator/processes/app-files.ts'
import { until } from '../../support/until.ts'
import { ask, KEY } from '../support.ts'
import { APP, quickClock, running, written } from './support.ts'

const says = (text: string) => `export default ({ log }) => log(${JSON.stringify(text)})`

/** Starts a hub with one app, and waits until the app runs. `begun` contains the lines until then. */
async function emulated(folder: string, clock: Clock = quickClock) {
  const lines: string[] = []
  const warnings: string[] = []
  const emulation = await emulate({
    apiKeys: [{ key: KEY, scopes: ['hub'] }],
    rateLimit: false,
    clock,
    appFolders: [folder],
    onLine: (id, line) => lines.push(id === APP ? line : `${id}: ${line}`),
    warn: (problem) => warnings.push(problem),
  })
  onTestFinished(() => emulation[Symbol.asyncDispose]())
  const { hub } = emulation
  const app = {
    hub,
    lines,
    warnings,
    /** Writes synchronously, so that the hub never sees only a part of several changes. */
    write: (name: string, text: string) => writeFileSync(join(folder, name), text),
    /** Waits for a line with this text. Removes the lines up to this line, and resolves with them. */
    async until(text: string): Promise<string[]> {
      await until(`"${text}" in ${JSON.stringify(lines)}`, () => lines.some((line) => line.includes(text)))
      return lines.splice(0, lines.findIndex((line) => line.includes(text)) + 1)
    },
  }
  return { ...app, begun: await app.until('running') }
}

const RESTART = ['[hub] changed: app.js', '[hub] stopped']

test('each line of an app is shown, and each change of its state', async () => {
  const folder = written(`
    import { writeSync } from 'node:fs'
    export default ({ app, log }) => {
      log('two\\nlines')
      console.error('an error')
      writeSync(1, Buffer.from('half of é').subarray(0, -1))
      app.api.post('/rest', () => { writeSync(1, Buffer.from('é').subarray(1)); console.log('\\r') })
      app.api.post('/long', () => writeSync(1, 'x'.repeat(9000) + '\\n'))
      app.api.post('/exit', () => { writeSync(1, 'no end'); process.exit(3) })
    }
  `)
  const { hub, until, begun: shown } = await emulated(folder)
  await ask(hub, `POST /api/app/${APP}/rest`, { body: {} })
  shown.push(...(await until('half')))
  expect(shown.toSorted()).toEqual(['[hub] running', 'an error', 'half of é', 'lines', 'two'])
  await ask(hub, `POST /api/app/${APP}/long`, { body: {} })
  expect((await until('x')).join('')).toMatch(/^x{8192,9000}$/)
  await ask(hub, `POST /apps/app/${APP}/restart`)
  expect(await until('running')).toContain('[hub] stopped')
  await ask(hub, `POST /api/app/${APP}/rest`, { body: {} })
  await until('half')
  await ask(hub, `POST /api/app/${APP}/exit`, { body: {} })
  expect((await until('crashed')).slice(-2)).toEqual(['no end', '[hub] crashed: Error: exited with code 3'])
})

test('a save restarts the app, however the editor saves, and many saves at the same time restart it once', async () => {
  const folder = written({ 'app.js': says('one'), 'lib/a.js': '' })
  const app = await emulated(folder)

  app.write('app.js', says('two'))
  expect(await app.until('running')).toEqual([...RESTART, 'two', '[hub] running'])

  app.write('.app.js.swp', 'x')
  app.write('.new', says('six'))
  renameSync(join(folder, 'app.js'), join(folder, 'app.js~'))
  renameSync(join(folder, '.new'), join(folder, 'app.js'))
  expect(await app.until('running')).toEqual([...RESTART, 'six', '[hub] running'])

  for (let i = 0; i < 40; i++) {
    app.write('app.js', says(`burst ${i}`))
    app.write(`lib/${i}.js`, '')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  const shown = await app.until('burst 39')
  expect(shown.filter((line) => line.startsWith('[hub] changed'))).toEqual([
    '[hub] changed: app.js, lib/0.js, lib/1.js and 38 more',
  ])
  await app.until('running')

  mkdirSync(join(folder, 'new/folder'), { recursive: true })
  app.write('new/folder/b.js', '')
  expect(await app.until('running')).toContain('[hub] changed: new/folder/b.js')
  rmSync(join(folder, 'new'), { recursive: true })
  expect(await app.until('running')).toContain('[hub] changed: new/folder/b.js')
})

test('a file that does not belong to the app does not restart it', async () => {
  const folder = written({ 'app.js': says('one'), 'node_modules/a/index.js': '', '.git/HEAD': '' })
  const app = await emulated(folder)
  app.write('node_modules/a/index.js', 'x')
  app.write('.git/HEAD', 'x')
  app.write('app.js~', 'x')
  symlinkSync(folder, join(folder, '.link'))
  // The hub ignores the files above, and notices only the following change.
  app.write('app.js', says('two'))
  expect(await app.until('running')).toEqual([...RESTART, 'two', '[hub] running'])
})

test('an error in the code is shown as a crash, and the next save starts the app again', async () => {
  const app = await emulated(written(says('one')))
  app.write('app.js', 'export default (')
  const shown = await app.until('crashed')
  expect(shown.slice(0, 2)).toEqual(RESTART)
  expect(shown.join('\n')).toMatch(/app\.js:1\n/)
  expect(shown.at(-1)).toMatch(/^\[hub\] crashed: SyntaxError: /)
  expect(app.hub.apps.get(APP)).toMatchObject({ crashed: true })
  app.write('app.js', says('well again'))
  expect(await app.until('running')).toEqual(['[hub] changed: app.js', 'well again', '[hub] running'])
  expect(app.hub.apps.get(APP)).toMatchObject({ crashed: false, state: 'running' })
})

test('an invalid manifest leaves the app as it is, and a valid one is applied', async () => {
  const folder = written(says('one'))
  const app = await emulated(folder)
  const manifest = { id: APP, name: 'App', version: '1.0.0' }
  app.write('app.json', '{')
  expect((await app.until('not restarted')).at(-1)).toMatch(/app\.json: is not valid JSON$/)
  app.write('app.json', JSON.stringify({ ...manifest, id: 'com.example.other' }))
  expect((await app.until('not restarted')).at(-1)).toMatch(/another id, com\.example\.other; start the hub again$/)
  expect(app.hub.apps.get(APP)).toMatchObject({ state: 'running' })
  app.write('app.json', JSON.stringify(manifest))
  symlinkSync('/etc', join(folder, 'link'))
  expect((await app.until('not restarted')).at(-1)).toMatch(/link: a link that leads out of the app's folder$/)
  rmSync(join(folder, 'link'))
  await app.until('running')
  const next = { ...manifest, name: { en: 'Lamps' }, version: '1.1.0', main: 'lamps.js', settings: { a: 1 }, flow: {} }
  app.write('lamps.js', says('lamps'))
  app.write('app.json', JSON.stringify(next))
  expect(await app.until('running')).toContain('lamps')
  expect(app.hub.apps.get(APP)).toMatchObject({ name: 'Lamps', version: '1.1.0', state: 'running' })
  expect(app.hub.settings(APP)).toEqual({ a: 1 })
  app.write('lamps.js', says('more lamps'))
  await app.until('more lamps')
  expect(app.warnings).toEqual([`${APP} 1.1.0: ignored fields in app.json: flow`])
})

test('the app keeps running when its folder is removed, and restarts when the folder is back', async () => {
  const folder = written(says('one'))
  const app = await emulated(folder)
  const now = new Date()
  renameSync(folder, `${folder}-away`)
  expect(await app.until('no longer exists')).toEqual(['[hub] the folder of the app no longer exists'])
  expect(app.hub.apps.get(APP)).toMatchObject({ state: 'running' })
  await ask(app.hub, `POST /apps/app/${APP}/restart`)
  await app.until('crashed: Error: ENOENT')
  renameSync(`${folder}-away`, folder)
  expect(await app.until('running')).toEqual(['[hub] changed: app.js, app.json', 'one', '[hub] running'])
  // Replace the folder with a new folder whose files have the same names, sizes and times.
  rmSync(folder, { recursive: true })
  await app.until('no longer exists')
  mkdirSync(folder)
  app.write('app.json', JSON.stringify({ id: APP, name: 'App', version: '1.0.0' }))
  app.write('app.js', says('two'))
  utimesSync(join(folder, 'app.js'), now, now)
  expect(await app.until('running')).toContain('two')
})

test('a disabled app stays stopped when it is saved, and an uninstalled one stays removed', async () => {
  const app = await emulated(written(says('one')))
  await ask(app.hub, `PUT /apps/app/${APP}/disable`)
  await app.until('stopped')
  app.write('app.js', says('two'))
  expect(await app.until('changed')).toEqual(['[hub] changed: app.js'])
  await ask(app.hub, `PUT /apps/app/${APP}/enable`)
  expect(await app.until('running')).toEqual(['two', '[hub] running'])
  await ask(app.hub, `DELETE /apps/app/${APP}`)
  await app.until('stopped')
  expect(app.hub.apps.size).toBe(0)
})

test('an app that is reloaded while it is uninstalled does not return', async () => {
  const folder = written(`
    export default ({ app, log }) => { app.on('stop', () => new Promise((resolve) => setTimeout(resolve, 500))) }
  `)
  const hub = await running(folder)
  const pid = hub.apps.pid(APP)
  const reloaded = hub.apps.reload(APP, folder, ['app.js'])
  hub.apps.uninstall(APP, { purgeSettings: true })
  await reloaded
  expect(hub.apps.records.size).toBe(0)
  expect(() => process.kill(pid ?? 0, 0)).toThrow()
  expect(hub.state.apps()).toEqual([])
})

test('the number of watched files is limited', async () => {
  const folder = written(says('one'))
  expect([...(await filesIn(folder)).keys()].sort()).toEqual(['app.js', 'app.json'])
  mkdirSync(join(folder, 'many'))
  const names = Array.from({ length: MAX_FILES }, (_, at) => join(folder, 'many', `${at}.txt`))
  for (const name of names) writeFileSync(name, '')
  expect((await filesIn(folder)).size).toBe(MAX_FILES)
  const app = await emulated(folder, systemClock)
  expect(app.warnings).toEqual([`${APP}: has more than 5000 files; changes to the others are not detected`])
  expect((await filesIn(join(folder, 'absent'))).size).toBe(0)
})
