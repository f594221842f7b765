import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { JumpClock } from '../../support/jump-clock.ts'
import { available } from '../../support/skipped.ts'
import { until } from '../../support/until.ts'
import { APP, running, runningApp, written } from './support.ts'

const hasSpecialFiles = available(process.platform !== 'win32', 'the confinement of socket files', 'Windows has none')

/** Code that the confinement blocks, and the expected error; default: ERR_ACCESS_DENIED. */
type Attempt = readonly [name: string, code: string, error?: string]

/** Returns an app that makes each attempt, and emits the errors by the attempts' names. */
const attempting = (attempts: readonly Attempt[]) => `
  import { readFileSync, writeFileSync } from 'node:fs'
  import http from 'node:http'
  import http2 from 'node:http2'
  import https from 'node:https'
  import { createRequire } from 'node:module'
  import net from 'node:net'
  import tls from 'node:tls'
  import v8 from 'node:v8'
  import vm from 'node:vm'
  const THERE = process.cwd() + '/../there'
  const pipeHandle = () => process._getActiveHandles().find(({ _handle }) => _handle?.constructor.name === 'Pipe')._handle
  const attempts = [${attempts.map(([name, code]) => `[${JSON.stringify(name)}, async (OUT, Pipe) => { ${code} }]`)}]
  export default async ({ app }) => {
    const { constructor: Pipe } = pipeHandle()
    const outcomes = {}
    for (const [at, [name, attempt]] of attempts.entries()) {
      try {
        await attempt(process.cwd() + '/../out' + at, Pipe)
        outcomes[name] = 'done'
      } catch (error) {
        outcomes[name] = error.code ?? error.name
      }
    }
    app.emit('outcomes', outcomes)
  }
`

const refusalsOf = (attempts: readonly Attempt[]) => [
  ['outcomes', Object.fromEntries(attempts.map(([name, , error = 'ERR_ACCESS_DENIED']) => [name, error]))],
]

const REACHES: readonly Attempt[] = [
  ['files of the machine', 'readFileSync("/etc/passwd")'],
  ['files next to its folder', 'readFileSync("../x")'],
  ['writing, even into its own folder', 'writeFileSync("x", "")'],
  ['other programs', '(await import("node:child_process")).execFileSync("id")'],
  ['threads', 'new (await import("node:worker_threads")).Worker("", { eval: true })'],
  ['the inspector', '(await import("node:inspector")).open(0)'],
  ['native code', 'process.dlopen({ exports: {} }, "./x.node")', 'ERR_DLOPEN_DISABLED'],
  ['SQLite, which would read and write anywhere', 'await import("node:sqlite")', 'ERR_UNKNOWN_BUILTIN_MODULE'],
  // While coverage is measured, Node.js sets NODE_V8_COVERAGE in every child process.
  [
    'the environment of the hub',
    'if (Object.keys(process.env).every((name) => name === "NODE_V8_COVERAGE")) throw { code: "EMPTY" }',
    'EMPTY',
  ],
]

describe('an app is confined', () => {
  test('without access to other files, programs, threads, native code or the environment of the hub', async () => {
    const hub = await runningApp(attempting(REACHES))
    expect(hub.emitted).toEqual(refusalsOf(REACHES))
  })

  test('to its own folder, which it may read, as its working directory', async () => {
    const folder = written({
      'app.js': `
        import { readFileSync } from 'node:fs'
        import { deep } from './lib/deep.js'
        export default ({ app }) => app.emit('read', [deep, readFileSync('text.txt', 'utf8'), process.cwd()])
      `,
      'lib/deep.js': 'export const deep = 1',
      'text.txt': 'hello',
    })
    const hub = await running(folder)
    expect(hub.emitted).toEqual([['read', [1, 'hello', folder]]])
    expect(readFileSync(`/proc/${hub.apps.pid(APP)}/cmdline`, 'utf8')).toContain(`\0${APP}\0`)
  })
})

/** Ways to create a file, or to reach a socket; `OUT` is a path next to the app's folder, `THERE` a socket's path. */
const WAYS: readonly Attempt[] = [
  ['net.listen by a path', 'net.createServer().listen(OUT)'],
  ['net.listen by an option', 'net.createServer().listen({ path: OUT, readableAll: true })'],
  ['a socket without a name in the file system', 'net.createServer().listen("\\0abstract")'],
  ['http.listen', 'http.createServer().listen(OUT)'],
  ['https.listen', 'https.createServer().listen(OUT)'],
  ['http2.listen', 'http2.createServer().listen(OUT)'],
  ['tls.listen', 'tls.createServer().listen(OUT)'],
  ['an own server class', 'new (class extends net.Server {})().listen(OUT)'],
  ['the handle of a pipe', 'const pipe = new Pipe(1); pipe.bind(OUT)'],
  ['the function of the prototype', 'Reflect.apply(Pipe.prototype.bind, new Pipe(1), [OUT])'],
  ['a removed guard', 'delete Pipe.prototype.bind && new Pipe(1).bind(OUT)', 'TypeError'],
  ['a replaced guard', 'Object.defineProperty(Pipe.prototype, "bind", { value: 1 })', 'TypeError'],
  ['a derived pipe', 'new (class extends Pipe {})(1).bind(OUT)'],
  ['another realm', 'vm.runInNewContext("new Pipe(1).bind(OUT)", { Pipe, OUT })'],
  ['the permissions of a socket file', 'pipeHandle().fchmod(3)'],
  [
    'cluster as a worker',
    'process.env.NODE_UNIQUE_ID = "1"; (await import("node:cluster")).default; net.createServer().listen(OUT)',
  ],
  ['net.connect to a socket file', 'net.connect(THERE)'],
  ['net.connect by an option', 'net.connect({ path: THERE })'],
  ['http by socketPath', 'http.get({ socketPath: THERE })'],
  ['tls by a path', 'tls.connect({ path: THERE })'],
  ['process.binding', 'process.binding("pipe_wrap")'],
  ['process._linkedBinding', 'process._linkedBinding("pipe_wrap")'],
  ['internal modules', 'createRequire(import.meta.url)("internal/bootstrap/realm")', 'MODULE_NOT_FOUND'],
  ['the inspector in the process', 'new (await import("node:inspector")).Session().connect()'],
  ['flags of V8 that write files', 'v8.setFlagsFromString("--trace-turbo-path=" + OUT)'],
  ['flags of V8 by name', '(await import("node:v8")).setFlagsFromString("--logfile=" + OUT)'],
  ['flags of V8 by process', 'process.getBuiltinModule("v8").setFlagsFromString("--logfile=" + OUT)'],
  ['a heap snapshot', 'v8.writeHeapSnapshot(OUT)'],
  ['a heap snapshot near the limit', 'v8.setHeapSnapshotNearHeapLimit(1)'],
  ['a report', 'process.report.writeReport(OUT)'],
  ['traces', '(await import("node:trace_events")).createTracing({ categories: ["node"] }).enable()'],
  ['another program in its place', 'process.execve("/usr/bin/touch", ["touch", OUT], {})'],
  ['an engine of OpenSSL', '(await import("node:crypto")).setEngine(OUT)', 'ERR_CRYPTO_CUSTOM_ENGINE_NOT_SUPPORTED'],
]

describe.runIf(hasSpecialFiles)('an app creates no file and reaches no socket file', () => {
  test('in any way', async () => {
    const folder = written(attempting(WAYS))
    const there = createServer((socket) => socket.destroy()).listen(join(dirname(folder), 'there'))
    onTestFinished(() => void there.close())
    const hub = await running(folder)
    expect(hub.emitted).toEqual(refusalsOf(WAYS))
    expect(readdirSync(dirname(folder)).sort()).toEqual(['app', 'there'])
    expect(readdirSync(folder).sort()).toEqual(['app.js', 'app.json'])
  })

  test('but serves and sends requests over the network as before, and writes its output', async () => {
    const hub = await runningApp(`
      import { once } from 'node:events'
      import http from 'node:http'
      export default async ({ app, log }) => {
        log('to the output')
        const server = http.createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1')
        await once(server, 'listening')
        const answer = await fetch('http://127.0.0.1:' + server.address().port)
        app.emit('answer', await answer.text())
      }
    `)
    expect(hub.emitted).toEqual([['answer', 'hello']])
    await hub.untilOutput('to the output')
  })
})

describe('an app that breaks the rules affects no other app', () => {
  test('when it writes without end: its latest output is kept, and it waits', async () => {
    const hub = await runningApp(`
      export default ({ app }) => {
        setImmediate(function more() {
          for (let i = 0; i < 1000; i++) console.log('é'.repeat(100))
          setImmediate(more)
        })
      }
    `)
    await until('a full output', () => hub.apps.output(APP).length > 30_000)
    const output = hub.apps.output(APP)
    expect(Buffer.byteLength(output)).toBeLessThanOrEqual(64 * 1024)
    expect(output).toMatch(/^[é\n]+$/)
    // The hub limits how fast it reads the output, so it must use less than half a core.
    const begun = process.cpuUsage()
    await new Promise((resolve) => setTimeout(resolve, 1000))
    const { user, system } = process.cpuUsage(begun)
    expect((user + system) / 1000).toBeLessThan(500)
    hub.apps.disable(APP)
    await hub.untilState('stopped')
  })

  test('when it sends requests without end: they are answered at a limited rate, and it waits', async () => {
    let asked = 0
    const hub = await runningApp(
      `
      export default ({ hub }) => {
        setImmediate(function more() {
          for (let i = 0; i < 100; i++) hub.speak('x').catch(() => {})
          setTimeout(more, 5)
        })
      }
    `,
      {
        limits: { memory: 2 ** 30 },
        inApp: {
          call: () => {
            asked += 1
            return Promise.resolve('y'.repeat(1000))
          },
        },
      },
    )
    await until('the first questions', () => asked > 100)
    const begun = asked
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expect(asked - begun).toBeLessThan(450)
    expect(asked - begun).toBeGreaterThan(75)
    hub.apps.disable(APP)
    await hub.untilState('stopped')
  })

  test('when it sends invalid messages: that is logged once, and the others are processed', async () => {
    const hub = await runningApp(`
      import { writeSync } from 'node:fs'
      export default ({ app }) => {
        for (const line of ['{', 'null', '{"type":"strange"}', '{"type":"answer","id":99,"value":1}', '[[[[', '']) writeSync(3, line + '\\n')
        app.emit('after', 1)
      }
    `)
    expect(hub.emitted).toEqual([['after', 1]])
    expect(hub.apps.output(APP).match(/did not understand/g)).toHaveLength(1)
  })

  test('when it sends invalid requests: each one is refused by its id', async () => {
    const hub = await runningApp(`
      import { Socket } from 'node:net'
      export default async ({ app, hub }) => {
        const { write } = Socket.prototype
        const forged = [{ type: 'strange' }, { item: 5 }, { args: 'x' }, { operation: null }, { section: 'x'.repeat(1001) }]
        for (const fields of forged) {
          Socket.prototype.write = function (line) {
            Socket.prototype.write = write
            return this.write(JSON.stringify({ ...JSON.parse(line), ...fields }) + '\\n')
          }
          await hub.speak('x').catch(({ status, code, message }) => app.emit('refused', [status, code, message]))
        }
      }
    `)
    const wrong = ['type', 'item', 'args', 'operation', 'section']
    expect(hub.emitted).toEqual(
      wrong.map((name) => ['refused', [400, 'invalid_parameter', `Invalid Parameter: ${name}`]]),
    )
    expect(hub.apps.output(APP)).toBe('')
  })

  test('when it sends a message without an end: it is terminated', async () => {
    const hub = await runningApp(`
      export default ({ app }) => { setImmediate(() => app.emit('x', 'y'.repeat(50e6))) }
    `)
    await hub.untilCrashed()
    expect(hub.record.crashedMessage).toBe('Error: a message to the hub was too long')
  })

  test('when it hangs: its callers get an error, and beyond a few they are refused immediately', async () => {
    const clock = new JumpClock()
    const code = "export default ({ log }) => { setImmediate(() => { log('hangs'); for (;;) {} }) }"
    const hub = await runningApp(code, { clock })
    await hub.untilOutput('hangs')
    const waiting = Array.from({ length: 64 }, () => hub.ask('GET /').catch((error: unknown) => error))
    await expect(hub.ask('GET /')).rejects.toMatchObject({ status: 503, error: 'busy' })
    for (let i = 0; i < 5000; i++) hub.apps.setSetting(APP, 'big', 'x'.repeat(1000))
    hub.apps.disable(APP)
    // After two seconds, the hub kills an app that does not end.
    clock.jump(2_000)
    for (const answer of await Promise.all(waiting)) expect(answer).toMatchObject({ status: 503 })
    await hub.untilState('stopped')
    expect(hub.apps.output(APP)).toContain('does not read its messages')
  })
})
