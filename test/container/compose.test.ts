import { chmodSync, cpSync, mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { execute, runProgram } from '../support/process.ts'
import { until } from '../support/until.ts'
import { composed, containersOf, demo, hasCompose, healthOf, observe, SECRETS } from './support/compose.ts'
import { docker } from './support/engine.ts'
import { example } from './support/installation.ts'

const PROJECT = 'hub2mqtt-test'
const TOPIC = 'hub2mqtt/home/app/com.athom.hue'

describe.runIf(hasCompose)('the compose file', () => {
  const { path: folder, remove } = mkdtempDisposableSync(join(tmpdir(), 'hub2mqtt-compose-'))
  /** A copy of the demo's configuration, which tests change. */
  const CONFIG_DIR = join(folder, 'hub2mqtt')
  const compose = demo(PROJECT, { CONFIG_DIR })

  beforeAll(async () => {
    cpSync('config/demo/hub2mqtt', CONFIG_DIR, { recursive: true })
    // The container runs as a different user, who must be able to read the folder.
    chmodSync(folder, 0o755)
    await compose('up', '-d', '--no-build')
  })
  afterAll(async () => {
    await compose('down', '--volumes', '--timeout', '5')
    remove()
  })

  it('starts the demo: the bridge is ready, and the apps of the emulated hub are on MQTT', async () => {
    await expect
      .poll(
        () =>
          fetch('http://127.0.0.1:8099/readyz').then(
            ({ status }) => status,
            () => 0,
          ),
        { timeout: 45_000 },
      )
      .toBe(200)
    await using client = await observe()
    await until('an app', () => client.last(TOPIC))
  })

  it('shows all messages in the log of the watcher', async () => {
    await expect.poll(() => compose('logs', 'watcher'), { timeout: 20_000 }).toContain('hub2mqtt/home/state online')
  })

  it('logs no warnings with its own files', async () => {
    const logs = await compose('logs', 'hub2mqtt', 'mosquitto', 'emulated-hub')
    expect(logs).toContain('hub2mqtt started')
    expect(logs).not.toMatch(/"level":"(warn|error|fatal)"|warning|error/i)
  })

  it('accepts all options in hub2mqtt.yaml and all variables in hub2mqtt.env, without changes to itself', async () => {
    const changed = join(folder, 'changed')
    cpSync(CONFIG_DIR, changed, { recursive: true })
    writeFileSync(
      join(changed, 'hub2mqtt.yaml'),
      'hubs: {home: {url: http://10.0.0.1, api_key: k}, cabin: {url: http://10.0.0.2, api_key: k}}\n',
    )
    writeFileSync(
      join(changed, 'hub2mqtt.env'),
      'HUB2MQTT_APPS_EXCLUDE=a.b,c.*\nHUB2MQTT_SETTINGS_PUBLISH={"a.b":{"mode":"text"}}\n',
    )
    const { command, words, env } = composed(`${PROJECT}-changed`, { CONFIG_DIR: changed })
    const check = ['run', '--rm', '--no-deps', 'hub2mqtt', 'check-config']
    const { stdout, stderr, status } = await runProgram(command, [...words, ...check], { env })
    expect(status, stderr).toBe(0)
    expect(parse(stdout)).toMatchObject({
      hubs: { home: { url: 'http://10.0.0.1' }, cabin: { url: 'http://10.0.0.2' } },
      apps: { exclude: ['a.b', 'c.*'] },
      settings: { publish: { 'a.b': { mode: expect.anything() } } },
    })
    await execute(command, [...words, 'down'], { env })
  })

  it('reloads a changed file on SIGHUP', async () => {
    await using client = await observe()
    await until('the app', () => client.last(TOPIC))
    const file = join(CONFIG_DIR, 'hub2mqtt.yaml')
    writeFileSync(file, `${example(file)}apps: { exclude: [com.athom.hue] }\n`)
    await compose('kill', '-s', 'HUP', 'hub2mqtt')
    await until('the end of the app', () => client.last(TOPIC) === '')
  })

  it('makes every service healthy', async () => {
    await expect.poll(() => healthOf(compose), { timeout: 45_000 }).toEqual(['healthy', 'healthy', 'healthy', 'none'])
  })

  it('shows no secret in docker inspect, in a log or in an environment', async () => {
    const ids = await containersOf(compose)
    const seen = [await docker('inspect', ...ids), await compose('logs'), await compose('config')].join('\n')
    for (const name of [
      'hub_api_key',
      'mqtt_hub2mqtt_password',
      'mqtt_homeassistant_password',
      'mqtt_button_password',
    ]) {
      const secret = example(`${SECRETS}/${name}`).trim()
      expect(secret.length).toBeGreaterThan(8)
      expect(seen, name).not.toContain(secret)
    }
  })
})
