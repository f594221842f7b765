import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { UsageError } from '../../../src/base/errors.ts'
import { parseCommandLine } from '../../../src/cli/parse.ts'
import { temporaryFolder } from '../../support/at-end.ts'
import { runProgram } from '../../support/process.ts'
import { PROGRAM } from '../../support/program.ts'
import { emulate, KEY, SECRETS } from './support.ts'

const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  runProgram(process.execPath, [PROGRAM, 'conformance', ...args], { env: { PATH: process.env['PATH'], ...env } })

test('the command prints a report as text and exits with 0 if the hub is usable', async () => {
  const hub = await emulate({ flavour: 'older' })
  const { status: code, stdout, stderr } = await run(['--url', hub.url], { HUB2MQTT_HUB_API_KEY: KEY })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout.split('\n')[0]).toBe('hub2mqtt can work with this hub and key.')
  expect(stdout).toContain('\nOperations\n')
  for (const secret of SECRETS) expect(stdout).not.toContain(secret)
})

test('the command prints one JSON object, and exits with 1 if the hub is not usable', async () => {
  const hub = await emulate()
  const file = join(temporaryFolder(), 'key')
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

const AT = ['--url', 'http://127.0.0.1:1']

test('an error in the command line exits with 2', async () => {
  const { status: code, stderr } = await run(['--url', 'ftp://x'])
  expect(code).toBe(2)
  expect(stderr).toContain('--url: expected an address')
})

test.each([
  [[], 'expected the address of the hub'],
  [AT, 'expected the API key'],
  [[...AT, '--key', 'a', '--key-file', 'b'], 'expected only one of them'],
  [[...AT, '--key', ' a'], 'the API key: expected'],
  [[...AT, '--key-file', '/no/such/file'], '--key-file: there is no such file'],
  [[...AT, '--key', 'a', '--writes'], 'needs --app'],
  [[...AT, '--key', 'a', '--downgrade', '1.0.0'], 'needs --writes'],
])('the error of %j is reported as one of the command line', async (args, message) => {
  const line = parseCommandLine(['conformance', ...args])
  if (!('run' in line)) throw new Error('no command')
  const io = { env: {}, stdin: process.stdin, print() {}, warn() {} }
  const error = await line.run(io).catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(UsageError)
  expect(error).toHaveProperty('message', expect.stringContaining(message))
})
