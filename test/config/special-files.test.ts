/** Files of configuration that are no plain files: each is a mistake, said at once. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempDisposableSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
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
const HUB = "hubs: {home: {url: 'http://127.0.0.1:1', api_key: key-of-the-hub}}\n"
const URL = "url: 'mqtts://127.0.0.1:1'"
/** Where configuration names a file → the configuration that names this one; without, it is the file itself. */
const PLACES: Readonly<Record<string, ((path: string) => string) | undefined>> = {
  'the configuration file': undefined,
  'a hub of the folder': () => 'hubs_dir: hubs\n',
  "a hub's api_key_file": (path) => `hubs: {home: {url: 'http://127.0.0.1:1', api_key_file: ${path}}}`,
  'mqtt.password_file': (path) => `${HUB}mqtt: {${URL}, username: x, password_file: ${path}}`,
  'mqtt.ca_file': (path) => `${HUB}mqtt: {${URL}, ca_file: ${path}}`,
  'mqtt.cert_file': (path) => `${HUB}mqtt: {${URL}, cert_file: ${path}, key_file: ${path}}`,
  'fleet.password_file': (path) => `${HUB}fleet: {nats: ['nats://127.0.0.1:1'], username: x, password_file: ${path}}`,
  'http.password_file': (path) => `${HUB}http: {password_file: ${path}}`,
}

describe.runIf(hasSpecialFiles)('the daemon says what is wrong, and ends', () => {
  const cases = Object.keys(PLACES).flatMap((place) => Object.keys(MAKE).map((kind) => [place, kind] as const))

  test.each(cases)('when %s is %s', async (place, kind) => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'special-'))
    mkdirSync(join(folder.path, 'hubs'))
    const special = join(folder.path, 'hubs', 'special.yaml')
    MAKE[kind]?.(special)
    const text = PLACES[place]?.(special)
    const config = text === undefined ? special : join(folder.path, 'hub2mqtt.yaml')
    if (text !== undefined) writeFileSync(config, text)
    await using bridge = new BridgeProcess({ config })
    expect(await bridge.closed).toBe('code 2')
    const reason = kind === 'a file of 2 MiB' ? 'it is larger than 1 MiB' : 'it is not a plain file'
    expect(bridge.errors.join('\n')).toContain(reason)
  })
})

describe.runIf(hasSpecialFiles)('while the daemon runs, a hub whose file becomes', () => {
  test.each(Object.keys(MAKE))('%s is a mistake, and the configuration from before holds on', async (kind) => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'special-'))
    const hub = join(folder.path, 'home.yaml')
    writeFileSync(hub, 'url: http://127.0.0.1:1\napi_key: key-of-the-hub\n')
    const HUB2MQTT_MQTT_URL = 'mqtt://127.0.0.1:1'
    const env = { HUB2MQTT_HUBS_DIR: folder.path, HUB2MQTT_HTTP_ENABLED: 'false', HUB2MQTT_MQTT_URL }
    await using bridge = new BridgeProcess({ env })
    onTestFinished(() => bridge.stop('SIGKILL'))
    const says = (text: string) => expect.poll(() => bridge.lines.join('\n'), { timeout: 15_000 }).toContain(text)
    await says('hub2mqtt started')
    rmSync(hub)
    MAKE[kind]?.(hub)
    bridge.signal('SIGHUP')
    await says('the one from before holds on')
    await bridge.stop()
    expect(bridge.end).toBe('code 0')
  })
})
