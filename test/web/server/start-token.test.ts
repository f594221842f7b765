import { execFileSync } from 'node:child_process'
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { open } from '../../../src/cli/running.ts'
import { ConfigError } from '../../../src/config/mistakes.ts'
import { startToken } from '../../../src/config/start-token.ts'
import { EmulatedHub } from '../../../src/emulator/hub.ts'
import { temporaryFolder } from '../../support/at-end.ts'
import { BridgeProcess } from '../../support/bridge-process.ts'
import { freePort } from '../../support/ports.ts'
import { runProgram } from '../../support/process.ts'
import { PROGRAM } from '../../support/program.ts'
import { available } from '../../support/skipped.ts'
import { ownerOf } from '../../support/start-token.ts'
import { until } from '../../support/until.ts'

const isRoot = available(process.getuid?.() === 0, 'a token file of another user', 'only root may create one')

const FORM = /^[\w-]{43}$/
const GOOD = 'a-token-that-was-kept-with-43-characters---'

const tokenIn = async (file: string | null) => await startToken(file, { warn() {} })

describe('the start-up token', () => {
  it('is readable by its owner only, and is the same at the next start', async () => {
    const file = join(temporaryFolder(), 'hub2mqtt.yaml.token')
    const token = await tokenIn(file)
    expect(token).toMatch(FORM)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(await tokenIn(file)).toBe(token)
  })

  it('is different at each start if it cannot be stored', async () => {
    const tokens = [
      await tokenIn(null),
      await tokenIn(null),
      await tokenIn(join(temporaryFolder(), 'no', 'such', 'folder')),
    ]
    expect(new Set(tokens).size).toBe(3)
  })

  it.each([
    ['others can read', (file: string) => writeFileSync(file, GOOD, { mode: 0o644 })],
    ['is empty', (file: string) => writeFileSync(file, '', { mode: 0o600 })],
  ])('replaces a file that %s', async (_, make) => {
    const file = join(temporaryFolder(), 'token')
    make(file)
    const token = await tokenIn(file)
    expect(token).toMatch(FORM)
    expect(token).not.toBe(GOOD)
    expect(readFileSync(file, 'utf8')).toBe(`${token}\n`)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it.each([
    ['a link', (file: string, other: string) => symlinkSync(other, file)],
    ['a link to an endless file', (file: string) => symlinkSync('/dev/zero', file)],
    ['a pipe without a writer', (file: string) => execFileSync('mkfifo', ['-m', '600', file])],
    ['a folder', (file: string) => mkdirSync(file)],
    ['a file with other content', (file: string) => writeFileSync(file, 'of somebody', { mode: 0o600 })],
    ['a large file', (file: string) => writeFileSync(file, `${' '.repeat(2_000_000)}${GOOD}`, { mode: 0o600 })],
  ])('does not replace %s', async (_, make) => {
    const inside = temporaryFolder()
    const [file, other] = [join(inside, 'token'), join(inside, 'other')]
    writeFileSync(other, GOOD, { mode: 0o600 })
    make(file, other)
    const before = lstatSync(file)
    const names = readdirSync(inside)
    const token = await tokenIn(file)
    expect(token).toMatch(FORM)
    expect(token).not.toBe(GOOD)
    expect(lstatSync(file)).toMatchObject({ ino: before.ino, mode: before.mode, size: before.size })
    expect(readdirSync(inside)).toEqual(names)
  })

  it.runIf(isRoot)('of another user is neither used nor replaced, and the log says so', async () => {
    const file = join(temporaryFolder(), 'token')
    writeFileSync(file, GOOD, { mode: 0o644 })
    chownSync(file, 65_534, 65_534)
    const logged: string[] = []
    expect(await startToken(file, { warn: (_, text) => logged.push(text) })).not.toBe(GOOD)
    expect(readFileSync(file, 'utf8')).toBe(GOOD)
    expect(logged).toEqual(['the start-up token is not stored: this user may not replace its file'])
  })
})

/** Runs the command `open` in this process, and resolves with what it prints. */
async function opened(config?: string, env = {}): Promise<string> {
  const printed: string[] = []
  const { stdin } = process
  expect(await open({ env, stdin, print: (line) => printed.push(line), warn() {} }, { config })).toBe(0)
  return printed.join('\n')
}

/** Starts a hub and a configuration. `http` contains options in addition to those that every test needs. */
async function start(http: Readonly<Record<string, unknown>> = {}) {
  const open = new AsyncDisposableStack()
  onTestFinished(() => open.disposeAsync())
  const hub = open.use(await EmulatedHub.start({ keys: { 'key-of-the-hub': ['hub.app'] }, settleMs: 50 }))
  const config = join(temporaryFolder(), 'hub2mqtt.yaml')
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/`
  const write = (more: object) => {
    const hubs = { home: { url: hub.url, api_key: 'key-of-the-hub' } }
    const embedded = { port: 0 }
    writeFileSync(config, JSON.stringify({ hubs, mqtt: { embedded }, http: { port, ...more } }), { mode: 0o600 })
  }
  write(http)
  const run = async () => {
    const daemon = open.use(new BridgeProcess({ config }))
    await daemon.untilLine('hub2mqtt started', 30_000)
    return daemon
  }
  const openCommand = () => opened(config)
  const ask = async (path: string, headers = {}) => await (await fetch(`${url}${path}`, { headers })).text()
  return { hub, config, url, run, write, openCommand, ask }
}

describe('a daemon without a password', () => {
  it('prints the address that logs in once, and hub2mqtt open prints it again, also after a restart', async () => {
    const { config, url, run, ask } = await start()
    const env = { PATH: process.env['PATH'] }
    const openProgram = (...before: string[]) => {
      const [command = '', ...args] = [...before, process.execPath, PROGRAM, 'open', '--config', config]
      return runProgram(command, args, { env })
    }
    expect(await openProgram()).toMatchObject({ status: 1, stderr: expect.stringContaining('no start-up token') })
    const file = `${config}.token`
    writeFileSync(file, '', { mode: 0o200 })
    // Without these capabilities, file permissions apply to root too.
    const withoutRights = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] : []
    expect(await openProgram(...withoutRights)).toEqual({
      status: 1,
      stdout: '',
      stderr: `hub2mqtt: ${file}: only the user who started hub2mqtt may read the start-up token\n`,
    })
    rmSync(file)
    const daemon = await run()
    const address = await daemon.page()
    expect(address).toMatch(new RegExp(`^${url}\\?token=[\\w-]{43}$`))
    expect(daemon.lines.filter((line) => line.includes('token='))).toHaveLength(1)
    expect(await openProgram()).toEqual({ status: 0, stdout: `${address}\n`, stderr: '' })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(JSON.parse(await ask('api/session', ownerOf(address)))).toMatchObject({ access: 'full' })
    await daemon.stop()
    expect(await (await run()).page()).toBe(address)
  })

  it('shows its token only in that address: in no log, topic, answer or page that quotes it', async () => {
    const { hub, config, run, ask } = await start()
    writeFileSync(`${config}.token`, GOOD, { mode: 0o600 })
    const [app = ''] = hub.apps.keys()
    const daemon = await run()
    const owner = ownerOf(await daemon.page())
    await until('the apps', async () => (await ask('api/state')).includes(app))
    hub.crash(app, `Error: ${GOOD} in an app`)
    await until('the crash', async () => (await ask('api/state')).includes('in an app'))
    const post = async (path: string, body: string) => {
      const headers = { ...owner, 'content-type': 'application/json' }
      return await (
        await fetch(`${new URL(await daemon.page()).origin}/api/commands/${path}`, { method: 'POST', headers, body })
      ).text()
    }
    const answers = [
      await post('home/install', JSON.stringify({ id: GOOD })),
      await post(`home/app/${GOOD}/restart`, ''),
    ]
    const shown = [
      await ask('api/state', owner),
      await ask('api/config', owner),
      await ask('healthz'),
      await ask('metrics'),
      await ask(''),
    ]
    expect([...answers, ...shown].join('\n')).not.toContain(GOOD)
    const logged = [...daemon.lines, ...daemon.errors].filter((line) => !line.includes('?token='))
    expect(logged.join('\n')).not.toContain(GOOD)
    for (const line of logged) expect(() => JSON.parse(line)).not.toThrow()
  })

  it('stores its token in http.token_file, and stores and prints it each time a changed configuration no longer has a password, and not before', async () => {
    const token_file = join(temporaryFolder(), 'kept')
    const password = 'correct horse battery'
    const { config, run, write, ask, openCommand } = await start({ token_file, password })
    const daemon = await run()
    await expect(openCommand()).rejects.toThrow('http.password is set')
    const printed = () => daemon.lines.filter((line) => line.includes('?token=')).length
    const reload = async (http: object) => {
      const before = daemon.lines.length
      write(http)
      daemon.signal('SIGHUP')
      await until('the reload', () => daemon.lines.slice(before).some((line) => line.includes('read again')))
    }
    for (const times of [1, 2]) {
      await reload({ token_file, password })
      rmSync(token_file, { force: true })
      expect(printed()).toBe(times - 1)
      await reload({ token_file })
      await until('the page to be open for reading', async () => (await ask('api/session')).includes('"local"'))
      await until('the address', () => printed() === times)
      const address = await daemon.page()
      await until('the file', async () => (await openCommand().catch(() => '')) === address)
      expect(`${new URL(address).searchParams.get('token')}\n`).toBe(readFileSync(token_file, 'utf8'))
      expect(JSON.parse(await ask('api/session', ownerOf(address)))).toMatchObject({ access: 'full' })
    }
    await reload({ token_file, public_url: 'http://hub2mqtt.lan/' })
    await ask('api/session')
    expect(printed()).toBe(2)
    expect(existsSync(`${config}.token`)).toBe(false)
  })
})

describe('hub2mqtt open explains why there is no address', () => {
  it.each([
    ['a broken file', 'http: {', ' line 1, column 8: '],
    ['a broken option', 'http: { port: many }', 'http.port'],
    ['no file', undefined, 'there is no such file'],
  ])('as an error in the configuration, with %s', async (_, text, words) => {
    const config = join(temporaryFolder(), 'hub2mqtt.yaml')
    if (text !== undefined) writeFileSync(config, text)
    const error = await opened(config).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ConfigError)
    expect(String(error)).toContain(words)
    expect(String(error)).toContain(config)
  })

  it('but prints the address on a first run, without a file, because there is a token', async () => {
    const config = join(temporaryFolder(), 'hub2mqtt.yaml')
    writeFileSync(`${config}.token`, GOOD, { mode: 0o600 })
    expect(await opened(config, { HUB2MQTT_HTTP_PORT: '8099' })).toContain(GOOD)
  })

  it.each([
    [{ host: '0.0.0.0' }, 'http.password'],
    [{ port: 0 }, 'http.port is 0'],
    [{ enabled: false }, 'http.enabled is false'],
    [{ page: false }, 'http.page is false'],
    // Even a password that cannot be read, or that is invalid, disables the token.
    [{ password: 'correct horse battery' }, 'http.password is set'],
    [{ password_file: 'not-there' }, 'http.password is set'],
    [{ password: 'short' }, 'http.password is set'],
  ])('with %j, also if there is a token', async (http, words) => {
    const { config, openCommand, write } = await start()
    writeFileSync(`${config}.token`, GOOD, { mode: 0o600 })
    expect(await openCommand()).toContain(GOOD)
    write(http)
    await expect(openCommand()).rejects.toThrow(words)
  })

  it('without a file', async () => {
    await expect(opened()).rejects.toThrow('http.token_file')
  })
})
