import { describe, expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { APP, quickClock, runningApp } from './support.ts'

const THROWS = `
function connect(address) {
  throw new Error('connect EHOSTUNREACH ' + address)
}
export default () => { setTimeout(connect, 20, '192.0.2.77') }
`

describe('a crash of an app', () => {
  test('is reported with its stack, with paths in the files of the app, and counted', async () => {
    const hub = await runningApp(THROWS)
    await hub.untilCrashed()
    expect(hub.record).toMatchObject({ state: 'stopped', crashed: true, exitCode: 1, exitSignal: null, exitCount: 1 })
    expect(hub.record.crashedMessage).toMatch(
      /^Error: connect EHOSTUNREACH 192\.0\.2\.77\n {4}at .*connect.* \(\/app\.js:3:9\)/,
    )
    expect(hub.apps.output(APP)).toContain('EHOSTUNREACH')
    hub.apps.restart(APP)
    await until('the second crash', () => hub.record['exitCount'] === 2)
    expect(hub.state.apps()).toMatchObject([{ crashed: true, crashedCount: 2, exitCode: 1 }])
  })

  test('is not followed by a restart by the hub, and is over when the app is started again', async () => {
    const hub = await runningApp(`
      export default async ({ app, hub }) => {
        const settings = hub.manager('settings')
        if ((await settings.get('tries')) === 1) return
        await settings.set('tries', 1)
        throw new Error('not yet')
      }
    `)
    await hub.untilCrashed()
    const told = hub.events.length
    hub.apps.setSetting(APP, 'unrelated', 1)
    expect(hub.events.length).toBe(told)
    expect(hub.apps.pid(APP)).toBeUndefined()
    hub.apps.restart(APP)
    await hub.untilState('running')
    expect(hub.record).toMatchObject({ crashed: false, crashedMessage: null, exitCount: 1 })
  })

  test.each([
    ['an unhandled rejection', 'Promise.reject(new TypeError("unhandled"))', /^TypeError: unhandled\n/],
    ['a thrown value that is not an error', 'setTimeout(() => { throw { odd: 1 } })', /odd: 1/],
    ['an exit', 'setTimeout(() => process.exit(7), 10)', /^Error: exited with code 7$/],
    ['a signal', 'process.kill(process.pid, "SIGKILL")', /^Error: ended by SIGKILL$/],
    ['an abort', 'process.abort()', /^Error: ended by SIGABRT$/],
    [
      'a full heap',
      'const all = []; setTimeout(() => { for (;;) all.push(new Array(100000).fill(1.5)) })',
      /out of memory/,
    ],
    ['an import of a missing module', 'await import("./absent.js")', /^Error.*absent\.js/],
    ['an app that cannot be parsed', '(', /SyntaxError/],
    ['an app that exports nothing', undefined, /app\.js has no function as its default export/],
  ])('is reported for %s', async (_name, code, message) => {
    const text = code === undefined ? 'export const a = 1' : `export default async () => { ${code} }`
    const hub = await runningApp(text, { limits: { memory: 64 * 1024 * 1024 } })
    await hub.untilCrashed()
    expect(hub.record.crashedMessage).toMatch(message)
  })

  test.each([
    ['an ES module', 'export const a = 1\nexport const = 2', /^SyntaxError: /],
    ['a CommonJS module', 'const a = 1\nconst = 2', /^\/lib\/lamps\.js:2\n/],
  ])('has the file and the line in the output if %s cannot be parsed', async (_name, text, message) => {
    const hub = await runningApp({ 'app.js': "import './lib/lamps.js'", 'lib/lamps.js': text })
    await hub.untilCrashed()
    expect(hub.record.crashedMessage).toMatch(message)
    expect(hub.apps.output(APP)).toMatch(/lib\/lamps\.js:2\n[^\n]*const = 2\n/)
    expect(hub.apps.output(APP).match(/lamps\.js:2/g)).toHaveLength(1)
  })

  test('happens to an app that uses too much memory outside its heap', async () => {
    const code = 'const kept = []; export default () => { setInterval(() => kept.push(Buffer.alloc(8e6, 1)), 10) }'
    const hub = await runningApp(code, { limits: { memory: 128 * 1024 * 1024 }, clock: quickClock })
    await hub.untilCrashed()
    expect(hub.record).toMatchObject({ crashedMessage: 'Too many memwarns', exitSignal: 'SIGKILL' })
    expect(hub.apps.output(APP)).toContain('Too many memwarns')
  })

  test('happens to an app that uses too much of the processor for too long', async () => {
    const hub = await runningApp('export default () => { setTimeout(() => { for (;;) {} }, 10) }', {
      limits: { cpu: 0.05, cpuSeconds: 2 },
      clock: quickClock,
    })
    await hub.untilCrashed()
    expect(hub.record.crashedMessage).toBe('CPU Warning Limit Reached')
  })
})
