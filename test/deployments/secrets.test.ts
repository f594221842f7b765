import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempDisposableSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'

let folder: string
beforeEach(() => {
  const made = mkdtempDisposableSync(join(tmpdir(), 'hub2mqtt-secrets-'))
  onTestFinished(made.remove)
  folder = made.path
  mkdirSync(join(folder, 'config'))
  mkdirSync(join(folder, 'bin'))
  copyFileSync('config/make-secrets.sh', join(folder, 'config/make-secrets.sh'))
  // In place of Mosquitto's own tool in a container: gives back what it is given, marked.
  writeFileSync(join(folder, 'bin/docker'), '#!/bin/sh\nsed s/:/:hashed-/\n')
  chmodSync(join(folder, 'bin/docker'), 0o755)
})

const make = (input: string, ...args: string[]) =>
  spawnSync('sh', [join(folder, 'config/make-secrets.sh'), ...args], {
    input,
    encoding: 'utf8',
    env: { ...process.env, PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH']}` },
  })
const text = (path: string) => readFileSync(join(folder, path), 'utf8')

it('makes every secret that the compose file names, for their owner alone, and never anew', () => {
  const { status, stdout, stderr } = make('key-of-my-hub\n', 'http://10.0.0.1')
  expect(status, stderr).toBe(0)
  expect(stdout + stderr).not.toContain('key-of-my-hub')
  const { secrets } = parse(readFileSync('docker-compose.yml', 'utf8'))
  for (const { file } of Object.values<{ file: string }>(secrets)) {
    if (file.includes('SECRETS_DIR')) expect(text(`secrets/${file.split('/').at(-1)}`).trim()).not.toBe('')
  }
  expect(text('secrets/hub_api_key')).toBe('key-of-my-hub\n')
  expect(statSync(join(folder, 'secrets')).mode & 0o077).toBe(0)
  expect(statSync(join(folder, 'secrets/hub_api_key')).mode & 0o077).toBe(0)
  expect(text('.env')).toMatch(/^SECRETS_DIR=\.\/secrets\nHUB_URL=http:\/\/10\.0\.0\.1\n.*RUN_AS=[1-9]\d*:\d+\n$/s)
  const password = text('secrets/mqtt_button_password').trim()
  expect(password).toMatch(/^[0-9a-f]{48}$/)
  expect(text('secrets/mosquitto_passwords')).toContain(`button:hashed-${password}\n`)

  expect(make('', 'http://10.0.0.2').status).toBe(0)
  expect(text('secrets/mqtt_button_password').trim()).toBe(password)
  expect(text('.env')).toContain('10.0.0.1')
})

it('says how it is used', () => {
  expect(make('').status).toBe(2)
})
