import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { AppProcess } from '../../../src/emulator/processes/app-process.ts'
import { Output } from '../../../src/emulator/processes/output.ts'
import { JumpClock } from '../../support/jump-clock.ts'
import { until } from '../../support/until.ts'
import { APP, isAlive, quickClock, running, runningApp, written } from './support.ts'

const IDLE = 'export default () => {}'

describe('an app as a process', () => {
  test.each(['commonjs', 'module'])('consists of modules, also below another package.json of type %s', async (type) => {
    const folder = written({
      'app.js': `
        import './lib/side.js'
        import own from './own/own.js'
        export { default } from './lib/start.js'
        globalThis.own = own
      `,
      'lib/side.js': 'await null; globalThis.side = import.meta.url',
      'lib/start.js': "export default ({ app }) => app.emit('made', [typeof globalThis.side, globalThis.own])",
      'own/own.js': 'module.exports = typeof require',
      'own/package.json': '{}',
    })
    writeFileSync(join(dirname(folder), 'package.json'), JSON.stringify({ type }))
    const hub = await running(folder)
    expect(hub.record.crashedMessage).toBe(null)
    expect(hub.emitted).toEqual([['made', ['string', 'function']]])
  })

  test('ends when it is disabled, stays stopped when it is restarted, and runs when it is enabled', async () => {
    const hub = await runningApp(IDLE)
    const former = hub.apps.pid(APP)
    hub.apps.disable(APP)
    await hub.untilState('stopped')
    hub.apps.restart(APP)
    expect(isAlive(former)).toBe(false)
    expect(hub.record).toMatchObject({ enabled: false, crashed: false, usage: { cpu: 0, mem: 0 } })
    hub.apps.enable(APP)
    await hub.untilState('running')
    expect(hub.state.apps()).toMatchObject([{ id: APP, enabled: true }])
  })

  test('ends in the state of the last of many quick commands', async () => {
    const hub = await runningApp(IDLE)
    for (let i = 0; i < 50; i++) {
      hub.apps.restart(APP)
      hub.apps.disable(APP)
      hub.apps.enable(APP)
    }
    hub.apps.disable(APP)
    await hub.untilState('stopped')
    expect(hub.apps.pid(APP)).toBeUndefined()
    expect(hub.states.filter((state) => state === 'starting').length).toBeLessThan(5)
  })

  test('has time to clean up, and its output shows that', async () => {
    const hub = await runningApp(`
      export default ({ app, log }) => {
        app.on('stop', async () => {
          await new Promise((resolve) => setTimeout(resolve, 100))
          log('tidied up')
        })
      }
    `)
    hub.apps.disable(APP)
    await hub.untilState('stopped')
    expect(hub.apps.output(APP)).toContain('tidied up')
  })

  test.each([
    ['does not finish stopping', "app.on('stop', () => new Promise(() => {})); log('set')"],
    ['hangs', "setImmediate(() => { log('set'); for (;;) {} })"],
  ])('is killed after two seconds when it %s, and its output has a message', async (_name, code) => {
    const clock = new JumpClock()
    const hub = await runningApp(`export default ({ app, log }) => { ${code} }`, { clock })
    await hub.untilOutput('set')
    hub.apps.disable(APP)
    clock.jump(1900)
    expect(hub.apps.output(APP)).not.toContain('SIGKILL')
    clock.jump(100)
    expect(hub.apps.output(APP)).toContain('did not end within 2 s of SIGTERM: SIGKILL')
    await hub.untilState('stopped')
    expect(hub.record).toMatchObject({ crashed: false })
  })

  test('is removed with its settings, or leaves them, as requested', async () => {
    for (const purgeSettings of [true, false]) {
      const hub = await runningApp(IDLE, { settings: { a: 1 } })
      const pid = hub.apps.pid(APP)
      hub.apps.uninstall(APP, { purgeSettings })
      expect(hub.events.at(-1)).toEqual(['app.delete', { id: APP }])
      expect(hub.apps.records.has(APP)).toBe(false)
      await until('the end of the process', () => !isAlive(pid))
      expect(hub.state.settings(APP).size).toBe(purgeSettings ? 0 : 1)
    }
  })

  test('shows its real memory and processor time, at most two seconds old', async () => {
    const hub = await runningApp(
      `
      export default () => { setInterval(() => { const end = Date.now() + 50; while (Date.now() < end); }, 100) }
    `,
      { clock: quickClock },
    )
    await until('its use', () => hub.record.usage.mem > 0)
    expect(hub.record.usage.mem).toBeGreaterThan(20_000_000)
    // The app uses half a core, or less on a busy machine.
    await until('its share of a core', () => hub.record.usage.cpu > 0.05 && hub.record.usage.cpu < 0.9)
  })

  test('releases memory when garbage is collected', async () => {
    const hub = await runningApp(
      `
      let kept
      export default ({ app }) => {
        kept = Array.from({ length: 60 }, () => new Array(131072).fill(1.5))
        app.api.post('/forget', () => { kept = undefined })
      }
    `,
      { clock: quickClock },
    )
    await until('its use', () => hub.record.usage.mem > 80_000_000)
    const before = hub.record.usage.mem
    await hub.ask('POST /forget')
    await hub.apps.collectGarbage(APP)
    expect(hub.record.usage.mem).toBeLessThan(before - 30_000_000)
  })
})

test('a process reports its own usage if the system does not', async () => {
  const folder = written(IDLE)
  const launch = { id: APP, version: '1.0.0', folder, main: 'app.js', memoryLimit: 2 ** 28 }
  const handlers = { answer: () => null, notice: () => {} }
  const app = await AppProcess.start(launch, systemClock, new Output(), handlers)
  onTestFinished(async () => void (await app.stop()))
  expect(await app.ready).toBe(true)
  expect(await app.request({ type: 'usage' })).toEqual({ cpuMs: expect.any(Number), mem: expect.any(Number) })
  expect(await app.stop()).toMatchObject({ requested: true, code: 0 })
  await expect(app.request({ type: 'usage' })).rejects.toMatchObject({ status: 503 })
})
