import { cpSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import manifest from '../../../package.json' with { type: 'json' }
import { EmulatedHub } from '../../../src/emulator/hub.ts'
import { population } from '../../../src/emulator/population.ts'
import { temporaryFolder } from '../../support/at-end.ts'
import { BridgeProcess } from '../../support/bridge-process.ts'
import { bundled } from '../../support/bundled.ts'
import { Observer } from '../../support/observer.ts'
import { freePort } from '../../support/ports.ts'
import { Process, runProgram } from '../../support/process.ts'
import { PROGRAM, SOURCES } from '../../support/program.ts'
import { until } from '../../support/until.ts'

const KEY = 'key-of-the-bundle'
const APP = 'net.population.app0000'

const folder = temporaryFolder(afterAll)
const alone = join(folder, 'alone')
/** The bundle that the tests use, or a separate bundle if the tests use the sources. */
const packaged = PROGRAM === SOURCES ? join(folder, 'packaged') : join(PROGRAM, '../..')
let program: string
beforeAll(async () => {
  if (PROGRAM === SOURCES) await bundled(packaged)
  cpSync(packaged, alone, { recursive: true, filter: (path) => basename(path) !== 'node_modules' })
  program = join(alone, 'src/bin.js')
})

const textOf = (pattern: string) =>
  globSync(`dist/${pattern}`, { cwd: alone })
    .map((path) => readFileSync(join(alone, path), 'utf8'))
    .join('\n')

const surroundings = (hub: EmulatedHub, port: number) => ({
  HUB2MQTT_HUB_URL: hub.url,
  HUB2MQTT_HUB_API_KEY: KEY,
  HUB2MQTT_MQTT_EMBEDDED_PORT: String(port),
  HUB2MQTT_HTTP_PORT: '0',
})

describe('the bundle', () => {
  it('bridges a hub and is a broker without any package, and shows no debug output of its libraries', async () => {
    await using hub = await EmulatedHub.start({ keys: { [KEY]: ['hub.app'] }, apps: population(1), settleMs: 0 })
    const port = await freePort()
    await using bridge = new BridgeProcess({
      program,
      env: {
        ...surroundings(hub, port),
        // Without `no-debug.cjs`, the MQTT library would print every packet, including passwords.
        DEBUG: '*',
      },
    })
    await bridge.untilLine('hub2mqtt started')
    await using observer = await Observer.on(port)
    await until('the app', () => observer.last(`hub2mqtt/home/app/${APP}`))
    await observer.publish(`hub2mqtt/home/app/${APP}/cmd/disable`, '')
    const answer = await until('the answer', () => observer.last(`hub2mqtt/home/app/${APP}/result/disable`))
    expect(JSON.parse(answer)).toMatchObject({ ok: true, command: 'disable' })
    await until('the change', () => JSON.parse(observer.last(`hub2mqtt/home/app/${APP}`) ?? '{}').enabled === false)
    expect(bridge.errors).toEqual([])
  })

  it('loads none of the HTTP client that is built into Node, which is slow to load, also for health and metrics', async () => {
    await using hub = await EmulatedHub.start({ keys: { [KEY]: ['hub.app'] }, apps: population(1), settleMs: 0 })
    await using bridge = new BridgeProcess({
      program,
      // Prints the modules that Node.js itself has loaded.
      preload: ['data:text/javascript,process.once("exit",()=>console.error(process.moduleLoadList.join("\\n")))'],
      env: surroundings(hub, await freePort()),
    })
    await bridge.untilLine('hub2mqtt started')
    await until('its channel', () => hub.connections.subscribers > 0)
    const url = bridge.lines.map((line) => /"url":"(http:[^"]*)"/.exec(line)?.[1]).find((found) => found !== undefined)
    for (const path of ['livez', 'healthz', 'metrics']) expect((await fetch(`${url}/${path}`)).status).toBe(200)
    await bridge.stop()
    expect(bridge.errors).toContain('NativeModule http')
    expect(bridge.errors).not.toContain('NativeModule internal/deps/undici/undici')
  })

  it('finds the files next to it: its version, the parser, the sample apps and their runtime', async () => {
    const run = (...args: readonly string[]) =>
      runProgram(process.execPath, [join(packaged, 'src/bin.js'), ...args], {})
    expect(await run('--version')).toMatchObject({ status: 0, stdout: `${manifest.version}\n`, stderr: '' })
    const file = join(folder, 'hub2mqtt.yaml')
    const text = 'hubs: { home: { url: "http://10.0.0.1", api_key: canary } }\nmqtt: { url: "mqtt://10.0.0.2" }\n'
    writeFileSync(file, text, { mode: 0o600 })
    expect(await run('check-config', '--config', file)).toMatchObject({ status: 0, stderr: '' })
    const made = join(folder, 'app')
    expect(await run('emulate', 'new-app', 'com.example.made', made)).toMatchObject({ status: 0, stderr: '' })
  })

  it('includes a hub, whose realtime channel works', async () => {
    const port = await freePort()
    const path = join(packaged, 'src/bin.js')
    const args = [path, 'emulate', '--simulated', '--port', String(port), '--api-key', 'key=hub.app']
    await using hub = new Process(process.execPath, args, { env: { PATH: process.env['PATH'] } })
    await hub.untilPort(port)
    const { status } = await fetch(`http://127.0.0.1:${port}/api/manager/system/ping`)
    expect(status).toBe(200)
    const polled = await fetch(`http://127.0.0.1:${port}/socket.io/?EIO=4&transport=websocket`)
    expect(polled.status).toBe(400)
    expect(hub.errors).toEqual([])
  })

  it('has the daemon in one file, which a command line and a health check do not load', () => {
    const needs = (file: string) =>
      [...textOf(file).matchAll(/^(?:import|export) .*"\.\/(.+)";$/gm)].map(([, name]) => name)
    expect(needs('start.js')).toEqual(['rolldown-runtime.js'])
    expect(needs('config.js').sort()).toEqual(['rolldown-runtime.js', 'start.js'])
    expect(needs('daemon.js').sort()).toEqual(['config.js', 'rolldown-runtime.js', 'start.js'])
    expect(textOf('daemon.js')).not.toContain('node_modules/hono/')
    expect(needs('main.js').sort()).toEqual(['rolldown-runtime.js', 'start.js'])
    for (const part of [
      'src/bridge/bridge.ts',
      'src/mqtt/link.ts',
      'src/web/server/listener.ts',
      'src/hub/http-client.ts',
    ])
      expect(textOf('daemon.js')).toContain(`// ${part}\n`)
  })

  it('has only ASCII characters, because one other would double the memory that V8 needs for the text', () => {
    expect(/[^\0-\x7f]/.exec(textOf('*.js'))).toBe(null)
  })

  it('keeps the notices of code that a package has copied', () => {
    expect(textOf('daemon.js')).toContain('formdata-polyfill. MIT License.')
  })

  it('includes the licence of every bundled package', () => {
    const names = [...textOf('*.js').matchAll(/^\/\/ .*node_modules\/((?:@[^/]+\/)?[^/\n]+)\//gm)].map(
      ([, name]) => name,
    )
    expect(new Set(names).size).toBeGreaterThan(30)
    const licences = textOf('licences.md')
    for (const name of new Set(names)) expect(licences).toMatch(new RegExp(`^## ${name} - `, 'm'))
  })
})
