import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Observer } from '../support/observer.ts'
import { execute } from '../support/process.ts'
import { until } from '../support/until.ts'
import { docker, hasDocker, IMAGE, MOSQUITTO_IMAGE } from './support/engine.ts'
import { example } from './support/installation.ts'

const PROJECT = 'hub2mqtt-test'
const SECRETS = 'config/demo/secrets'

/** The plugin of newer engines or the program of older ones. */
async function findCompose(): Promise<readonly string[] | undefined> {
  for (const words of [['docker', 'compose'], ['docker-compose']]) {
    const [command = '', ...args] = words
    const works = await execute(command, [...args, 'version']).then(
      () => true,
      () => false,
    )
    if (works) return words
  }
  if (process.env['REQUIRE_DOCKER'] === '1') throw new Error('REQUIRE_DOCKER=1, but there is no docker compose')
  process.stderr.write(
    'skipped: the tests of the compose file, as there is no docker compose (apt-get install docker-compose)\n',
  )
  return undefined
}

const found = hasDocker ? await findCompose() : undefined

describe.runIf(found !== undefined)('the compose file', () => {
  const [command = '', ...words] = found ?? []
  const compose = (...args: readonly string[]) =>
    execute(command, [...words, '-p', PROJECT, '--profile', 'demo', ...args], {
      env: { ...process.env, HUB2MQTT_IMAGE: IMAGE, MOSQUITTO_IMAGE },
    })
  const containers = async () => (await compose('ps', '-q')).split('\n').filter((id) => /^[0-9a-f]{12,}$/.test(id))

  beforeAll(() => compose('up', '-d', '--no-build'))
  afterAll(() => compose('down', '--volumes', '--timeout', '5'))

  it('brings up the demo: the bridge is ready, and the apps of the emulated hub are on MQTT', async () => {
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
    const password = example(`${SECRETS}/mqtt_homeassistant_password`).trim()
    await using client = await Observer.on(1883, { protocol: '5', username: 'homeassistant', password })
    await until('an app', () => client.seen.some(({ topic }) => topic === 'hub2mqtt/home/app/com.athom.hue'))
  })

  it('shows everything in the log of the watcher', async () => {
    await expect.poll(() => compose('logs', 'watcher'), { timeout: 20_000 }).toContain('hub2mqtt/home/state online')
  })

  it('makes every service healthy', async () => {
    await expect
      .poll(
        async () =>
          (
            await docker(
              'inspect',
              '-f',
              '{{if .State.Health}}{{.State.Health.Status}}{{else}}none{{end}}',
              ...(await containers()),
            )
          )
            .trim()
            .split('\n')
            .sort(),
        {
          timeout: 45_000,
        },
      )
      .toEqual(['healthy', 'healthy', 'healthy', 'none'])
  })

  it('locks up and limits every service', async () => {
    const all: readonly unknown[] = JSON.parse(await docker('inspect', ...(await containers())))
    expect(all).toHaveLength(4)
    for (const one of all) {
      expect(one).toMatchObject({
        HostConfig: {
          ReadonlyRootfs: true,
          CapDrop: ['ALL'],
          SecurityOpt: ['no-new-privileges:true'],
          PidsLimit: 64,
          RestartPolicy: { Name: 'unless-stopped' },
          Privileged: false,
        },
      })
    }
  })

  it('shows no secret to docker inspect, in a log or in an environment', async () => {
    const ids = await containers()
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

  it('opens its ports to this machine only', async () => {
    const ports = await docker(
      'ps',
      '--filter',
      `label=com.docker.compose.project=${PROJECT}`,
      '--format',
      '{{.Ports}}',
    )
    expect(ports).toContain('127.0.0.1:1883->1883/tcp')
    expect(ports).not.toMatch(/0\.0\.0\.0:|\[::\]:|:::/)
  })
})
