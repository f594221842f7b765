import {
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempDisposableSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { Observer } from '../support/observer.ts'
import { accepts, freePort } from '../support/ports.ts'
import { execute, Process, runProgram } from '../support/process.ts'
import { until } from '../support/until.ts'

const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url))
const APP = 'com.athom.hue'

/**
 * The environment of a user of this machine: without the checkout's variables and those of `npm run`. A registry may
 * have its own certificate.
 */
const env = Object.fromEntries(
  Object.entries(process.env)
    .filter(([name]) => !/^(npm_|NODE(?!_EXTRA_CA_CERTS)|VITEST|HUB2MQTT_)/.test(name))
    .map(([name, value = '']) => [name, name === 'PATH' ? withoutCheckout(value) : value]),
)

function withoutCheckout(path: string): string {
  const folders = path.split(delimiter).filter((folder) => !/[\\/]node_modules[\\/]|node-gyp-bin/.test(`${folder}/`))
  return folders.join(delimiter)
}

const { path: folder, remove } = mkdtempDisposableSync(join(tmpdir(), 'hub2mqtt-package-'))
const home = join(folder, 'empty')
const installed = join(home, 'node_modules/hub2mqtt')
// Hides npm's own messages, which are not part of the output of hub2mqtt.
const settings = { cwd: home, env: { ...env, npm_config_loglevel: 'error', npm_config_update_notifier: 'false' } }

beforeAll(async () => {
  mkdirSync(home)
  // Build first, because a release is built before it is packed.
  await execute('npm', ['run', 'build'], { cwd: CHECKOUT })
  await execute('npm', ['run', 'build:page'], { cwd: CHECKOUT })
  await execute('npm', ['pack', '--pack-destination', folder], { cwd: CHECKOUT, env })
  await execute('npm', ['install', '--no-audit', '--no-fund', `../hub2mqtt-${manifest.version}.tgz`], settings)
  console.log(
    `installed by npm ${await execute('npm', ['--version'], settings)} under Node ${await execute('node', ['--version'], settings)}`,
  )
})
afterAll(remove)

const hub2mqtt = (...args: readonly string[]) => runProgram('npx', ['hub2mqtt', ...args], settings)
/** Starts a long-lived command. Signals reach npx and its child processes, as with Ctrl-C. */
const lasting = (...args: readonly string[]) => new Process('npx', ['hub2mqtt', ...args], { ...settings, group: true })

/** Returns the commands and the start line of the systemd unit, with the paths of this installation. */
function unitIn(prefix: string) {
  const unit = readFileSync(join(CHECKOUT, 'config/systemd/hub2mqtt.service'), 'utf8').replaceAll(
    '/opt/hub2mqtt',
    prefix,
  )
  const tarball = join(folder, `hub2mqtt-${manifest.version}.tgz`)
  const [, install = ''] = /^# +(npm install .*)$/m.exec(unit) ?? []
  const [, start = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? []
  const [, doctor = ''] = /^# +runuser -u hub2mqtt -- (.*)$/m.exec(unit) ?? []
  const variables =
    /^Environment=(.*)$/m
      .exec(unit)?.[1]
      ?.split(' ')
      .map((one) => one.split(/=(.*)/s)) ?? []
  const tokensOf = (command: string) => command.replaceAll('/etc/hub2mqtt', home).split(' ')
  return {
    install: tokensOf(install).map((word) => (word.endsWith('.tgz') ? tarball : word)),
    start: tokensOf(start),
    doctor: tokensOf(doctor),
    environment: Object.fromEntries(variables),
  }
}

describe('the package', () => {
  it('runs as the systemd unit installs and starts it, with the page', async () => {
    const { install, start, doctor, environment } = unitIn(join(folder, 'opt'))
    await execute(install[0] ?? '', install.slice(1), settings)
    const [port, http] = [await freePort(), await freePort()]
    const file = JSON.stringify({ mqtt: { embedded: { port } }, http: { port: http } })
    writeFileSync(join(home, 'hub2mqtt.yaml'), file, { mode: 0o600 })
    const surroundings = { ...settings, env: { PATH: env['PATH'], ...environment } }
    await using daemon = new Process(start[0] ?? '', start.slice(1), surroundings)
    await daemon.untilLine('set it up at')
    const page = await fetch(`http://127.0.0.1:${http}/`)
    expect(page.headers.get('content-type')).toContain('text/html')
    const { status, stderr } = await runProgram(doctor[0] ?? '', doctor.slice(1), surroundings)
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining('no hub configured') })
  }, 180_000)

  it('contains the program, its sources, the documents and the licence, and no unwanted files', () => {
    const files = globSync('**/*', { cwd: installed, exclude: ['node_modules/**'] }).map((path) =>
      path.replaceAll('\\', '/'),
    )
    // Other tests load the files that this list leaves out.
    for (const present of [
      'dist/main.js',
      'dist/licences.md',
      'src/main.ts',
      'README.md',
      'LICENSE',
      'CHANGELOG.md',
      'docs/mqtt.md',
      'config/hub2mqtt.example.yaml',
      'src/web/ui/dist/icon-180.png',
      'src/web/ui/dist/icon-192.png',
      'src/web/ui/dist/icon-512.png',
      'src/web/ui/build.ts',
      'src/emulator/sdk/sdk.d.ts',
      'src/emulator/sdk/testing.d.ts',
      'config/demo/store/net.lindqvist.heatpump/2.5.0/app.js',
    ]) {
      expect(files).toContain(present)
    }
    for (const path of files)
      expect(path).not.toMatch(
        /^(src\/(build|docs|page\/app)|test|config\/(demo\/(hub2mqtt|secrets)|home-assistant-app))(\/|$)/,
      )
  })

  it('contains no reference to the place where it was built', () => {
    expect(realpathSync(installed)).toBe(installed)
    const files = globSync('**/*', { cwd: installed, exclude: ['node_modules/**'] }).map((path) =>
      join(installed, path),
    )
    for (const path of files.filter((one) => lstatSync(one).isFile())) {
      expect(readFileSync(path, 'utf8').includes(CHECKOUT), path).toBe(false)
    }
  })

  it('copies the test library for apps to its own folder and to new apps', async () => {
    const script = "import { startApp } from 'hub2mqtt/sdk/testing'; console.log(typeof startApp)"
    const { stdout } = await runProgram('node', ['--input-type=module', '--eval', script], settings)
    expect(stdout).toBe('function\n')
    expect(await hub2mqtt('emulate', 'new-app', 'com.example.app')).toMatchObject({ status: 0, stderr: '' })
    expect(await execute('npm', ['test', '--prefix', 'com.example.app'], settings)).toMatch(/ pass 2\n/)
  })

  it('runs the demo without hardware, executes a command and ends with Ctrl-C', async () => {
    const [port, http] = [await freePort(), await freePort()]
    const file = JSON.stringify({ mqtt: { embedded: { port } }, http: { port: http } })
    writeFileSync(join(home, 'demo.yaml'), file)
    const demo = lasting('demo', '--config', 'demo.yaml')
    await using _stopped = demo
    // The demo briefly opens each port to test whether it is free, so wait for its message.
    await demo.untilLine('The demo runs')
    await until('ready', async () => (await fetch(`http://127.0.0.1:${http}/readyz`)).ok)
    await using observer = await Observer.on(port)
    await until('an app', () => observer.last(`hub2mqtt/home/app/${APP}`))

    const topic = `home/app/${APP}/cmd/disable`
    const { status, stdout, stderr } = await hub2mqtt('call', topic, '--config', 'demo.yaml')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, command: 'disable', app: APP })
    await until('disabled', () => JSON.parse(observer.last(`hub2mqtt/home/app/${APP}`) ?? '{}').enabled === false)

    await demo.stop('SIGINT')
    expect(demo.errors).toEqual([])
    await until('the end', async () => !(await accepts(port)))
  })
})
