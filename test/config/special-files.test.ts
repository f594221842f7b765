/** Tests that a configuration file that is not a plain file is reported as an error immediately. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../support/at-end.ts'
import { BridgeProcess } from '../support/bridge-process.ts'
import { available } from '../support/skipped.ts'
import { until } from '../support/until.ts'

const hasSpecialFiles = available(
  process.platform !== 'win32',
  'special files in a configuration',
  'Windows has no pipes and devices among its files',
)

const NOT_PLAIN = 'it is not a plain file'
const KINDS: readonly (readonly [kind: string, reason: string, make: (path: string) => void])[] = [
  ['a pipe', NOT_PLAIN, (path) => void execFileSync('mkfifo', [path])],
  ['a link to /dev/zero', NOT_PLAIN, (path) => symlinkSync('/dev/zero', path)],
  ['a file of 2 MiB', 'it is larger than 1 MiB', (path) => writeFileSync(path, Buffer.alloc(2 * 1024 * 1024))],
]

/** Makes one file of each kind, in the order of `KINDS`. */
const makeEach = (folder: string) =>
  KINDS.map(([, , make], i) => {
    const path = join(folder, `special-${i}.yaml`)
    rmSync(path, { force: true })
    make(path)
    return path
  })

describe.runIf(hasSpecialFiles)('the daemon reports the error, and ends, when', () => {
  async function mistakesOf(config: string): Promise<readonly string[]> {
    await using bridge = new BridgeProcess({ config })
    expect(await bridge.closed).toBe('code 2')
    return bridge.errors
  }

  test.each(KINDS)('the configuration file is %s', async (_, reason, make) => {
    const special = join(temporaryFolder(), 'special.yaml')
    make(special)
    expect((await mistakesOf(special)).filter((line) => line.includes(reason))).toHaveLength(1)
  })

  test('the file of a hub, or a file that the configuration names, is one of these', async () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'hubs'))
    const files = makeEach(join(folder, 'hubs'))
    const [pipe, device, large] = files
    writeFileSync(join(folder, 'hubs', 'home.yaml'), `url: http://127.0.0.1:1\napi_key_file: ${device}\n`)
    const config = join(folder, 'hub2mqtt.yaml')
    const text = `hubs_dir: hubs
mqtt: {url: 'mqtts://127.0.0.1:1', username: x, password_file: ${pipe}, ca_file: ${device}, cert_file: ${large}, key_file: ${pipe}}
fleet: {nats: ['nats://127.0.0.1:1'], username: x, password_file: ${device}}
http: {password_file: ${large}}
`
    writeFileSync(config, text)
    const places = (await mistakesOf(config)).flatMap((line) => {
      const [, place, reason] = /^hub2mqtt: (\S+?):? .*(it is .*)$/.exec(line) ?? []
      return reason === undefined ? [] : [`${place} ${reason}`]
    })
    const [ofPipe, ofDevice, ofLarge] = KINDS.map(([, reason]) => reason)
    const named = {
      'hubs.home.api_key_file': ofDevice,
      'mqtt.password_file': ofPipe,
      'mqtt.ca_file': ofDevice,
      'mqtt.cert_file': ofLarge,
      'mqtt.key_file': ofPipe,
      'fleet.password_file': ofDevice,
      'http.password_file': ofLarge,
    }
    const wanted = [...Object.entries(named), ...files.map((file, i) => [file, KINDS[i]?.[1]])]
    expect(places.sort()).toEqual(wanted.map((one) => one.join(' ')).sort())
  })
})

test.runIf(hasSpecialFiles)(
  'files of hubs that are replaced by such files are errors, and the previous configuration stays in effect',
  async () => {
    const folder = temporaryFolder()
    for (const i of KINDS.keys()) {
      writeFileSync(join(folder, `special-${i}.yaml`), 'url: http://127.0.0.1:1\napi_key: key-of-the-hub\n')
    }
    const HUB2MQTT_MQTT_URL = 'mqtt://127.0.0.1:1'
    const env = { HUB2MQTT_HUBS_DIR: folder, HUB2MQTT_HTTP_ENABLED: 'false', HUB2MQTT_MQTT_URL }
    await using bridge = new BridgeProcess({ env })
    onTestFinished(() => bridge.stop('SIGKILL'))
    await bridge.untilLine('hub2mqtt started', 15_000)
    const files = makeEach(folder)
    bridge.signal('SIGHUP')
    await bridge.untilLine('the previous one stays in effect', 15_000)
    for (const [i, [, reason]] of KINDS.entries()) {
      const isError = (line: string) => line.includes(files[i] ?? '?') && line.includes(reason)
      // The bridge may have read the folder on its own before all files were replaced.
      await until(reason, () => bridge.lines.some(isError))
    }
    await bridge.stop()
    expect(bridge.end).toBe('code 0')
  },
)
