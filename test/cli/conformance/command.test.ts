import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { temporaryFolder } from '../../support/at-end.ts'
import { performed } from '../support.ts'
import { closeAtEnd, emulate, KEY, SECRETS } from './support.ts'

closeAtEnd()

const run = (args: readonly string[], env = {}) => performed(['conformance', ...args], env)
const folder = temporaryFolder(afterAll)

test.concurrent('the command prints a report as text and exits with 0 if the hub is usable', async () => {
  const hub = await emulate({ flavour: 'older' })
  const { stdout, ...ended } = await run(['--url', hub.url], { HUB2MQTT_HUB_API_KEY: KEY })
  expect(ended).toEqual({ status: 0, stderr: '' })
  expect(stdout.split('\n')[0]).toBe('hub2mqtt can work with this hub and key.')
  expect(stdout).toContain('\nOperations\n')
  for (const secret of SECRETS) expect(stdout).not.toContain(secret)
})

test.concurrent.for([
  [KEY, 0],
  ['another-key', 1],
] as const)('the command prints one JSON object, with the key %s, and exits with %i', async ([key, status]) => {
  const hub = await emulate()
  const file = join(folder, key)
  writeFileSync(file, `${key}\n`)
  const ended = await run(['--url', hub.url, '--key-file', file, '--json'])
  expect(ended).toMatchObject({ status, stderr: '' })
  expect(JSON.parse(ended.stdout)).toMatchObject({ format: 1, usable: status === 0 })
  expect(ended.stdout).not.toContain(key)
})

const AT = ['--url', 'http://127.0.0.1:1']

test.each([
  [['--url', 'ftp://x'], '--url: expected an address'],
  [[], 'expected the address of the hub'],
  [AT, 'expected the API key'],
  [[...AT, '--key', 'a', '--key-file', 'b'], 'expected only one of them'],
  [[...AT, '--key', ' a'], 'the API key: expected'],
  [[...AT, '--key-file', '/no/such/file'], '--key-file: there is no such file'],
  [[...AT, '--key', 'a', '--writes'], 'needs --app'],
  [[...AT, '--key', 'a', '--downgrade', '1.0.0'], 'needs --writes'],
  [[...AT, '--key', 'a', '--writes', '--app', 'a', '--downgrade', 'latest'], '--downgrade: expected a version'],
])('the error of %j is reported as one of the command line', async (args, message) => {
  expect(await run(args)).toEqual({ status: 2, stdout: '', stderr: expect.stringContaining(message) })
})
