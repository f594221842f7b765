import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { parse } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { temporaryFolder } from '../support/at-end.ts'

let folder: string
beforeEach(() => {
  folder = temporaryFolder()
  cpSync('config/demo/hub2mqtt', join(folder, 'config/demo/hub2mqtt'), { recursive: true })
  mkdirSync(join(folder, 'bin'))
  copyFileSync('config/make-secrets.sh', join(folder, 'config/make-secrets.sh'))
  replaceProgram('docker', MARK)
})

// Mosquitto's tool in a container is replaced by a command that marks the passwords instead of hashing them.
const MARK = 'sed s/:/:hashed-/'
function replaceProgram(name: string, script: string) {
  writeFileSync(join(folder, 'bin', name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(folder, 'bin', name), 0o755)
}

const make = (input: string, ...args: string[]) =>
  spawnSync('sh', [join(folder, 'config/make-secrets.sh'), ...args], {
    input,
    encoding: 'utf8',
    env: { ...process.env, PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH']}` },
  })
const readMounted = (path: string) => readFileSync(path.replace('/run/secrets', join(folder, 'secrets')), 'utf8')
const text = (path: string) => readFileSync(join(folder, path), 'utf8')

it('creates every secret of the compose file, readable only for its owner, and never replaces one', () => {
  const { status, stdout, stderr } = make('key-of-my-hub\n', 'http://10.0.0.1')
  expect(status, stderr).toBe(0)
  expect(stdout + stderr).not.toContain('key-of-my-hub')
  for (const path of ['docker-compose.yml', 'config/compose.fleet.yml']) {
    const { secrets } = parse(readFileSync(path, 'utf8'))
    for (const { file } of Object.values<{ file: string }>(secrets)) {
      if (file.includes('SECRETS_DIR')) expect(text(`secrets/${file.split('/').at(-1)}`).trim()).not.toBe('')
    }
  }
  expect(text('secrets/hub_api_key')).toBe('key-of-my-hub\n')
  expect(statSync(join(folder, 'secrets')).mode & 0o077).toBe(0)
  expect(statSync(join(folder, 'secrets/hub_api_key')).mode & 0o077).toBe(0)
  expect(text('.env')).toMatch(/^SECRETS_DIR=\.\/secrets\nCONFIG_DIR=\.\/hub2mqtt\nRUN_AS=[1-9]\d*:\d+\n$/)
  const password = text('secrets/mqtt_button_password').trim()
  expect(password).toMatch(/^[0-9a-f]{48}$/)
  expect(text('secrets/mosquitto_passwords')).toContain(`button:hashed-${password}\n`)

  const others = 'nodered:a hash\nhomeassistant:of a password that its owner has chosen\n'
  const own = text('secrets/mosquitto_passwords').replace(/^homeassistant:.*\n/m, others)
  writeFileSync(join(folder, 'secrets/mosquitto_passwords'), own)
  expect(make('', 'http://10.0.0.2').status).toBe(0)
  expect(text('secrets/mosquitto_passwords')).toBe(own)
  rmSync(join(folder, 'secrets/mqtt_broker_password'))
  expect(make('', 'http://10.0.0.2').status).toBe(0)
  expect(text('secrets/mosquitto_passwords').match(/^\w+/gm)?.sort()).toEqual([
    'broker',
    'button',
    'homeassistant',
    'hub2mqtt',
    'nodered',
  ])
  expect(text('secrets/mosquitto_passwords')).toContain(others)
  expect(text('secrets/mosquitto_passwords')).toContain(`broker:hashed-${text('secrets/mqtt_broker_password')}`)
  expect(text('secrets/mqtt_button_password').trim()).toBe(password)
  expect(text('hub2mqtt/hub2mqtt.yaml')).toContain('http://10.0.0.1\n')
})

it('says that an existing configuration keeps its address', () => {
  const kept = /hub2mqtt\.yaml already exists.*http:\/\/10\.0\.0\.1$/m
  expect(make('key-of-my-hub\n', 'http://10.0.0.11').stderr).not.toMatch(kept)
  expect(make('', 'http://10.0.0.11').stderr).not.toMatch(kept)
  expect(make('', 'http://10.0.0.1').stderr).toMatch(kept)
})

it('requires an API key, and asks for it again', () => {
  for (const input of ['\n', '']) {
    expect(make(input, 'http://10.0.0.1')).toMatchObject({ status: 1, stderr: expect.stringContaining('is required') })
  }
  expect(make('key-of-my-hub\n', 'http://10.0.0.1/a&b#c').status).toBe(0)
  expect(text('secrets/hub_api_key')).toBe('key-of-my-hub\n')
  expect(text('hub2mqtt/hub2mqtt.yaml')).toContain('http://10.0.0.1/a&b#c\n')
})

it('refuses an address that the bridge would refuse, because the next run would keep it', () => {
  for (const address of ['', '10.0.0.1', 'http://', 'http://10.0.0.1 # mine']) {
    const { status, stderr } = make('key-of-my-hub\n', address)
    expect({ status, stderr }).toMatchObject({ status: 2, stderr: expect.stringContaining('http://192.168.1.20') })
    expect(existsSync(join(folder, 'secrets'))).toBe(false)
  }
})

it('creates a valid configuration for the hub, and a file for variables', () => {
  expect(make('key-of-my-hub\n', 'http://10.0.0.1').status).toBe(0)
  const { config } = loadConfig({ file: join(folder, 'hub2mqtt/hub2mqtt.yaml'), env: {}, readFile: readMounted })
  expect(config.hubs['home']).toMatchObject({ url: 'http://10.0.0.1', api_key: 'key-of-my-hub' })
  expect(config.mqtt).toMatchObject({ url: ['mqtt://mosquitto:1883'], username: 'hub2mqtt' })
  // The program must accept the examples in the file.
  const examples = text('hub2mqtt/hub2mqtt.env').matchAll(/^#(HUB2MQTT_\w+)=(.*)$/gm)
  const env = Object.fromEntries([...examples].map(([, name, value]) => [name, value]))
  expect(Object.keys(env)).toHaveLength(3)
  const own = loadConfig({ file: join(folder, 'hub2mqtt/hub2mqtt.yaml'), env, readFile: readMounted }).config
  expect(own.apps.exclude).toEqual(['com.example.one', 'com.example.test.*'])
  expect(own.log.level).toBe('debug')
})

it('adds to the files of an earlier version, and keeps them', () => {
  for (const end of ['\n', '']) {
    writeFileSync(join(folder, '.env'), `SECRETS_DIR=/elsewhere\nRUN_AS=77:77${end}`)
    expect(make('key\n', 'http://10.0.0.1').status).toBe(0)
    expect(text('.env')).toBe('SECRETS_DIR=/elsewhere\nRUN_AS=77:77\nCONFIG_DIR=./hub2mqtt\n')
  }
})

it('removes an empty folder that the engine has created instead of a file', () => {
  for (const path of ['secrets/hub_api_key', 'hub2mqtt/hub2mqtt.yaml'])
    mkdirSync(join(folder, path), { recursive: true })
  const { status, stderr } = make('key\n', 'http://10.0.0.1')
  expect(status, stderr).toBe(0)
  expect(stderr).toMatch(/^removed secrets\/hub_api_key, an empty folder that the container engine had created/m)
  expect(text('secrets/hub_api_key')).toBe('key\n')
})

it('names a folder that it cannot remove', () => {
  mkdirSync(join(folder, 'secrets/hub_api_key/full'), { recursive: true })
  const { status, stderr } = make('key\n', 'http://10.0.0.1')
  expect({ status, stderr }).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/Remove it: sudo rmdir secrets\/hub_api_key\n$/),
  })
})

const passwords = ['broker', 'button', 'homeassistant', 'hub2mqtt'].map((user) => `mqtt_${user}_password`)
const everySecret = ['hub_api_key', 'mosquitto_passwords', ...passwords, 'nats_password']
function expectComplete() {
  expect(readdirSync(join(folder, 'secrets')).sort()).toEqual(everySecret)
  const hashes = passwords.map((file) => `${file.split('_')[1]}:hashed-${text(`secrets/${file}`)}`)
  expect(text('secrets/mosquitto_passwords').match(/.+\n/g)?.sort()).toEqual(hashes)
  expect(text('hub2mqtt/hub2mqtt.yaml')).toBe(
    readFileSync('config/demo/hub2mqtt/hub2mqtt.yaml', 'utf8').replace('http://emulated-hub:8080', 'http://10.0.0.1'),
  )
  expect(text('hub2mqtt/hub2mqtt.env')).toBe(readFileSync('config/demo/hub2mqtt/hub2mqtt.env', 'utf8'))
}

it.each(['exit 1', 'kill $PPID'])('keeps the passwords of the broker when the engine fails: %s', (failure) => {
  expect(make('key\n', 'http://10.0.0.1').status).toBe(0)
  const before = text('secrets/mosquitto_passwords')
  rmSync(join(folder, 'secrets/mqtt_broker_password'))
  replaceProgram('docker', failure)
  expect(make('', 'http://10.0.0.1').status).not.toBe(0)
  expect(text('secrets/mosquitto_passwords')).toBe(before)
  expect(readdirSync(join(folder, 'secrets')).sort()).toEqual(everySecret.filter((f) => f !== 'mqtt_broker_password'))

  replaceProgram('docker', MARK)
  expect(make('', 'http://10.0.0.1').status).toBe(0)
  expectComplete()
})

it('completes a run that was killed at any step', () => {
  expect(make('key\n', 'http://10.0.0.1').status).toBe(0)
  const steps = join(folder, 'steps')
  let killedAt = 0
  let killed: boolean
  do {
    killedAt++
    // Delete the passwords, but not their hashes.
    for (const file of [...passwords, 'nats_password']) rmSync(join(folder, 'secrets', file))
    rmSync(join(folder, 'hub2mqtt'), { recursive: true })
    writeFileSync(steps, '')
    const kill = `echo >> '${steps}'; [ $(wc -l < '${steps}') -ne ${killedAt} ] || { kill -9 $PPID; exit 1; }`
    replaceProgram('docker', `${kill}\n${MARK}`)
    for (const name of ['mv', 'cp']) replaceProgram(name, `${kill}\nexec /bin/${name} "$@"`)
    killed = make('', 'http://10.0.0.1').signal === 'SIGKILL'
    for (const name of ['mv', 'cp']) rmSync(join(folder, 'bin', name))
    replaceProgram('docker', MARK)
    expect(make('', 'http://10.0.0.1').status).toBe(0)
    expectComplete()
  } while (killed)
  expect(killedAt).toBeGreaterThan(8)
})

it('prints its usage', () => {
  expect(make('').status).toBe(2)
})
