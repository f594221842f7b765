import { chmodSync, mkdirSync, mkdtempDisposableSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { GenericContainer, Wait } from 'testcontainers'
import { afterAll, describe, expect, it } from 'vitest'
import { available } from '../support/skipped.ts'
import { APP_IMAGE, docker, hasDocker } from './support/engine.ts'

const SECRET = 'the-key-of-the-hub'

/** The options file must belong to root, as it does under the Supervisor. */
const isRoot = available(process.getuid?.() === 0, 'the Home Assistant app with its options', 'the test needs root')

describe.runIf(hasDocker)('the Home Assistant app', () => {
  const { path: folder, remove } = mkdtempDisposableSync(join(tmpdir(), 'hub2mqtt-app-'))
  afterAll(remove)

  /** Writes an options file that only root can read, like the Supervisor's file. */
  function options(values: Readonly<Record<string, unknown>>): string {
    const path = join(folder, 'options.json')
    writeFileSync(path, JSON.stringify(values))
    chmodSync(path, 0o600)
    return path
  }

  it.runIf(isRoot)('reads its options, drops root and runs', async () => {
    const source = options({ hub_url: 'http://127.0.0.1:1', hub_api_key: SECRET, mqtt_url: 'mqtt://127.0.0.1:1' })
    await using container = await new GenericContainer(APP_IMAGE)
      .withBindMounts([{ source, target: '/data/options.json', mode: 'ro' }])
      .withWaitStrategy(Wait.forLogMessage('hub2mqtt started'))
      .start()
    const { output } = await container.exec(['cat', '/proc/1/status'])
    expect(output).toMatch(/^Uid:\s+1000\s+1000\s+1000\s+1000$/m)
    expect(output).toMatch(/^Gid:\s+1000\s+1000\s+1000\s+1000$/m)
    expect(output).toMatch(/^Groups:\s+1000\s*$/m)
    expect(output).toMatch(/^CapEff:\s+0+$/m)
    expect(await container.exec(['hub2mqtt', 'health'])).toMatchObject({ exitCode: 0 })
    expect(await docker('logs', container.getId())).not.toContain(SECRET)
  })

  // The files have the modes that *File editor* or a careful user sets. In both cases, root owns the files.
  it.runIf(isRoot)('reads all other options from the file in its folder, and makes the folder private', async () => {
    const source = options({ hub_url: '', hub_api_key: '' })
    const own = join(folder, 'config')
    mkdirSync(own)
    writeFileSync(join(own, 'cabin-key'), SECRET, { mode: 0o644 })
    writeFileSync(
      join(own, 'hub2mqtt.yaml'),
      `
hubs:
  home: { url: http://127.0.0.1:1, api_key: ${SECRET} }
  cabin: { url: http://127.0.0.1:2, api_key_file: cabin-key }
mqtt: { url: mqtt://127.0.0.1:1, base_topic: from/the/file }
`,
      { mode: 0o600 },
    )
    await using container = await new GenericContainer(APP_IMAGE)
      .withBindMounts([
        { source, target: '/data/options.json', mode: 'ro' },
        { source: own, target: '/config', mode: 'rw' },
      ])
      .withWaitStrategy(Wait.forLogMessage('hub2mqtt started'))
      .start()
    const log = await docker('logs', container.getId())
    expect(log).toMatch(/"base_topic":"from\/the\/file","hubs":\["home","cabin"\]/)
    expect(log).not.toContain(SECRET)
    // The log must not warn that other users can read the keys.
    expect(log).not.toMatch(/every user|cannot be made private/)
    expect(statSync(own).mode & 0o077).toBe(0)
  })

  it('reports that a hub is missing', async () => {
    const source = options({ mqtt_url: 'mqtt://127.0.0.1:1' })
    const mount = `${source}:/data/options.json:ro`
    await expect(docker('run', '--rm', '--volume', mount, APP_IMAGE)).rejects.toThrow(/no hub; set hub_url/)
  })

  it('reports that a broker is missing', async () => {
    const source = options({ hub_url: 'http://127.0.0.1:1', hub_api_key: SECRET })
    const mount = `${source}:/data/options.json:ro`
    await expect(docker('run', '--rm', '--volume', mount, APP_IMAGE)).rejects.toThrow(/no MQTT broker; install/)
  })
})
