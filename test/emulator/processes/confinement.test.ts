import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { APP, running, written } from './support.ts'

describe('an app is confined', () => {
  test.each([
    ['files of the machine', 'readFileSync("/etc/passwd")', 'ERR_ACCESS_DENIED'],
    ['files beside its folder', 'readFileSync("../x")', 'ERR_ACCESS_DENIED'],
    ['writing, even into its own folder', 'writeFileSync("x", "")', 'ERR_ACCESS_DENIED'],
    ['other programs', '(await import("node:child_process")).execFileSync("id")', 'ERR_ACCESS_DENIED'],
    ['threads', 'new (await import("node:worker_threads")).Worker("", { eval: true })', 'ERR_ACCESS_DENIED'],
    ['the inspector', '(await import("node:inspector")).open(0)', 'ERR_ACCESS_DENIED'],
    ['native code', 'process.dlopen({ exports: {} }, "./x.node")', 'ERR_DLOPEN_DISABLED'],
    ['SQLite, which would read and write anywhere', 'await import("node:sqlite")', 'ERR_UNKNOWN_BUILTIN_MODULE'],
    // While coverage is measured, Node hands on its own variable, whatever a process is given.
    [
      'the environment of the hub',
      'if (Object.keys(process.env).every((name) => name === "NODE_V8_COVERAGE")) throw { code: "EMPTY" }',
      'EMPTY',
    ],
  ])('to do without %s', async (_name, code, error) => {
    const folder = await written(`
      import { readFileSync, writeFileSync } from 'node:fs'
      export default async ({ app }) => {
        try {
          ${code}
          app.emit('done')
        } catch (error) {
          app.emit('refused', error.code)
        }
      }
    `)
    const hub = await running(folder)
    expect(hub.told).toEqual([['refused', error]])
  })

  test('to its own folder, which it may read, and where it is', async () => {
    const folder = await written({
      'app.js': `
        import { readFileSync } from 'node:fs'
        import { deep } from './lib/deep.js'
        export default ({ app }) => app.emit('read', [deep, readFileSync('text.txt', 'utf8'), process.cwd()])
      `,
      'lib/deep.js': 'export const deep = 1',
      'text.txt': 'hello',
    })
    const hub = await running(folder)
    expect(hub.told).toEqual([['read', [1, 'hello', folder]]])
    expect(readFileSync(`/proc/${hub.apps.pid(APP)}/cmdline`, 'utf8')).toContain(`\0${APP}\0`)
  })
})

describe('an app that does not keep to the rules harms nobody else', () => {
  test('when it writes without end: the latest is kept, and it waits', async () => {
    const folder = await written(`
      export default ({ app }) => {
        setImmediate(function more() {
          for (let i = 0; i < 1000; i++) console.log('é'.repeat(100))
          setImmediate(more)
        })
      }
    `)
    const hub = await running(folder)
    await until('a full output', () => hub.apps.output(APP).length > 30_000)
    const output = hub.apps.output(APP)
    expect(Buffer.byteLength(output)).toBeLessThanOrEqual(64 * 1024)
    expect(output).toMatch(/^[é\n]+$/)
    // Whoever reads less than a process can write has time for others.
    const begun = process.cpuUsage()
    await new Promise((resolve) => setTimeout(resolve, 1000))
    const { user, system } = process.cpuUsage(begun)
    expect((user + system) / 1000).toBeLessThan(500)
    hub.apps.disable(APP)
    await hub.untilState('stopped')
  })

  test('when it asks without end: it is answered at a pace, and waits', async () => {
    let asked = 0
    const folder = await written(`
      export default ({ hub }) => {
        setImmediate(function more() {
          for (let i = 0; i < 100; i++) hub.speak('x').catch(() => {})
          setTimeout(more, 5)
        })
      }
    `)
    const hub = await running(folder, {
      limits: { memory: 2 ** 30 },
      inApp: {
        call: () => {
          asked += 1
          return Promise.resolve('y'.repeat(1000))
        },
      },
    })
    await until('the first questions', () => asked > 100)
    const begun = asked
    await new Promise((resolve) => setTimeout(resolve, 2000))
    expect(asked - begun).toBeLessThan(700)
    expect(asked - begun).toBeGreaterThan(150)
    hub.apps.disable(APP)
    await hub.untilState('stopped')
  })

  test('when it says what nobody understands: that is noted once, and the rest is heard', async () => {
    const folder = await written(`
      import { writeSync } from 'node:fs'
      export default ({ app }) => {
        for (const line of ['{', 'null', '{"type":"strange"}', '{"type":"answer","id":99,"value":1}', '[[[[', '']) writeSync(3, line + '\\n')
        app.emit('after', 1)
      }
    `)
    const hub = await running(folder)
    expect(hub.told).toEqual([['after', 1]])
    expect(hub.apps.output(APP).match(/was not understood/g)).toHaveLength(1)
  })

  test('when it sends a message without an end: it is ended', async () => {
    const folder = await written(`
      export default ({ app }) => { setImmediate(() => app.emit('x', 'y'.repeat(50e6))) }
    `)
    const hub = await running(folder)
    await hub.untilCrashed()
    expect(hub.record.crashedMessage).toBe('Error: a message to the hub was too long')
  })

  test('when it hangs: who asks it is told so, and more than a few are refused at once', async () => {
    const folder = await written(`
      export default ({ log }) => { setImmediate(() => { log('hangs'); for (;;) {} }) }
    `)
    const hub = await running(folder)
    await hub.untilOutput('hangs')
    const waiting = Array.from({ length: 64 }, () => hub.ask('GET /').catch((error: unknown) => error))
    await expect(hub.ask('GET /')).rejects.toMatchObject({ status: 503, error: 'busy' })
    for (let i = 0; i < 5000; i++) hub.apps.setSetting(APP, 'big', 'x'.repeat(1000))
    hub.apps.disable(APP)
    for (const answer of await Promise.all(waiting)) expect(answer).toMatchObject({ status: 503 })
    await hub.untilState('stopped')
    expect(hub.apps.output(APP)).toContain('does not read what it is told')
  })
})
