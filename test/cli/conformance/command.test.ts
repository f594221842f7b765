/** `hub2mqtt conformance` as it is run: what it prints, and how it exits. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../support/process.ts'
import { emulate, KEY, SECRETS } from './support.ts'

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))

const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  runProgram(process.execPath, [MAIN, 'conformance', ...args], { env: { PATH: process.env['PATH'], ...env } })

test('prints the report for people and exits with 0 where the hub can be worked with', async () => {
  const hub = await emulate({ flavour: 'older' })
  const { status: code, stdout, stderr } = await run(['--url', hub.url], { HUB2MQTT_HUB_API_KEY: KEY })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout.split('\n')[0]).toBe('hub2mqtt can work with this hub and key.')
  expect(stdout).toContain('\nOperations\n')
  for (const secret of SECRETS) expect(stdout).not.toContain(secret)
})

test('prints one JSON object, and exits with 1 where it cannot', async () => {
  const hub = await emulate()
  const folder = mkdtempSync(join(tmpdir(), 'conformance-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'key')
  for (const [key, code] of [
    [KEY, 0],
    ['another-key', 1],
  ] as const) {
    writeFileSync(file, `${key}\n`)
    const ended = await run(['--url', hub.url, '--key-file', file, '--json'])
    expect(ended.status).toBe(code)
    expect(JSON.parse(ended.stdout)).toMatchObject({ format: 1, usable: code === 0 })
    expect(ended.stdout).not.toContain(key)
  }
})

test.each([
  [[], 'expected the address of the hub'],
  [['--url', 'ftp://x'], '--url: expected an address'],
  [['--url', 'http://127.0.0.1:1'], 'expected the API key'],
  [['--url', 'http://127.0.0.1:1', '--key', 'a', '--key-file', 'b'], 'expected one of them'],
  [['--url', 'http://127.0.0.1:1', '--key', ' a'], 'the API key: expected'],
  [['--url', 'http://127.0.0.1:1', '--key-file', '/no/such/file'], '--key-file: there is no such file'],
  [['--url', 'http://127.0.0.1:1', '--key', 'a', '--writes'], 'expected --app'],
  [['--url', 'http://127.0.0.1:1', '--key', 'a', '--downgrade', '1.0.0'], 'expected --writes'],
])('a mistake of the command line exits with 2: %j', async (args, message) => {
  const { status: code, stderr } = await run(args)
  expect(code).toBe(2)
  expect(stderr).toContain(message)
})
