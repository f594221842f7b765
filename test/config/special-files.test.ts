/** A configuration file that is not a plain file is reported as an error immediately. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../support/at-end.ts'
import { BridgeProcess } from '../support/bridge-process.ts'
import { available } from '../support/skipped.ts'

const hasSpecialFiles = available(
  process.platform !== 'win32',
  'special files in a configuration',
  'Windows has no pipes and devices among its files',
)

const MAKE: Readonly<Record<string, (path: string) => void>> = {
  'a pipe': (path) => void execFileSync('mkfifo', [path]),
  'a link to /dev/zero': (path) => symlinkSync('/dev/zero', path),
  'a file of 2 MiB': (path) => {
    writeFileSync(path, '')
    truncateSync(path, 2 * 1024 * 1024)
  },
}

describe.runIf(hasSpecialFiles)('the daemon reports the error, and ends, when', () => {
  const kinds = Object.keys(MAKE)

  async function mistakesOf(kind: string, config: string): Promise<string[]> {
    await using bridge = new BridgeProcess({ config })
    expect(await bridge.closed).toBe('code 2')
    const reason = kind === 'a file of 2 MiB' ? 'it is larger than 1 MiB' : 'it is not a plain file'
    return bridge.errors.filter((line) => line.includes(reason))
  }

  test.each(kinds)('the configuration file is %s', async (kind) => {
    const folder = temporaryFolder()
    const special = join(folder, 'special.yaml')
    MAKE[kind]?.(special)
    expect(await mistakesOf(kind, special)).toHaveLength(1)
  })

  test.each(kinds)('a hub of the folder, or any file that the configuration names, is %s', async (kind) => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'hubs'))
    const special = join(folder, 'hubs', 'special.yaml')
    MAKE[kind]?.(special)
    writeFileSync(join(folder, 'hubs', 'home.yaml'), `url: http://127.0.0.1:1\napi_key_file: ${special}\n`)
    const [login, tls] = [
      `username: x, password_file: ${special}`,
      `ca_file: ${special}, cert_file: ${special}, key_file: ${special}`,
    ]
    const config = join(folder, 'hub2mqtt.yaml')
    const text = `hubs_dir: hubs
mqtt: {url: 'mqtts://127.0.0.1:1', ${login}, ${tls}}
fleet: {nats: ['nats://127.0.0.1:1'], ${login}}
http: {password_file: ${special}}
`
    writeFileSync(config, text)
    const places = (await mistakesOf(kind, config)).map((line) => /^hub2mqtt: (\S+?):? /.exec(line)?.[1])
    const mqtt = ['password_file', 'ca_file', 'cert_file', 'key_file'].map((name) => `mqtt.${name}`)
    const named = ['hubs.home.api_key_file', ...mqtt, 'fleet.password_file', 'http.password_file']
    expect(places.sort()).toEqual([special, ...named].sort())
  })
})

describe.runIf(hasSpecialFiles)('while the daemon runs, a hub whose file becomes', () => {
  test.each(Object.keys(MAKE))('%s is an error, and the previous configuration stays in effect', async (kind) => {
    const folder = temporaryFolder()
    const hub = join(folder, 'home.yaml')
    writeFileSync(hub, 'url: http://127.0.0.1:1\napi_key: key-of-the-hub\n')
    const HUB2MQTT_MQTT_URL = 'mqtt://127.0.0.1:1'
    const env = { HUB2MQTT_HUBS_DIR: folder, HUB2MQTT_HTTP_ENABLED: 'false', HUB2MQTT_MQTT_URL }
    await using bridge = new BridgeProcess({ env })
    onTestFinished(() => bridge.stop('SIGKILL'))
    const says = (text: string) => expect.poll(() => bridge.lines.join('\n'), { timeout: 15_000 }).toContain(text)
    await says('hub2mqtt started')
    rmSync(hub)
    MAKE[kind]?.(hub)
    bridge.signal('SIGHUP')
    await says('the previous one stays in effect')
    await bridge.stop()
    expect(bridge.end).toBe('code 0')
  })
})
