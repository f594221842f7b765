/** Tests that each file of the configuration that is not a plain file, or is too large, is reported as an error. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/mistakes.ts'
import { temporaryFolder } from '../support/at-end.ts'
import { available } from '../support/skipped.ts'

const hasSpecialFiles = available(
  process.platform !== 'win32',
  'special files in a configuration',
  'Windows has no pipes and devices among its files',
)

function mistakesIn(file: string): readonly string[] {
  try {
    loadConfig({ file, env: {} })
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes
    throw error
  }
}

const NOT_PLAIN = 'it is not a plain file'
const LARGE = 'it is larger than 1 MiB'

test.runIf(hasSpecialFiles)('special and large files are errors, as the configuration, a hub, or a named file', () => {
  const folder = temporaryFolder()
  const hubs = join(folder, 'hubs')
  mkdirSync(hubs)
  const [pipe, device, large] = ['pipe', 'device', 'large'].map((name) => join(hubs, `${name}.yaml`))
  execFileSync('mkfifo', [String(pipe)])
  symlinkSync('/dev/zero', String(device))
  writeFileSync(String(large), Buffer.alloc(2 * 1024 * 1024))
  writeFileSync(join(hubs, 'home.yaml'), `url: http://127.0.0.1:1\napi_key_file: ${device}\n`)
  const config = join(folder, 'hub2mqtt.yaml')
  const text = `hubs_dir: hubs
mqtt: {url: 'mqtts://127.0.0.1:1', username: x, password_file: ${pipe}, ca_file: ${device}, cert_file: ${large}, key_file: ${pipe}}
fleet: {nats: ['nats://127.0.0.1:1'], username: x, password_file: ${device}}
http: {password_file: ${large}}
`
  writeFileSync(config, text)
  const places = mistakesIn(config).flatMap((line) => {
    const [, place, reason] = /^(\S+?):? .*(it is .*)$/.exec(line) ?? []
    return reason === undefined ? [] : [`${place} ${reason}`]
  })
  const wanted = {
    'hubs.home.api_key_file': NOT_PLAIN,
    'mqtt.password_file': NOT_PLAIN,
    'mqtt.ca_file': NOT_PLAIN,
    'mqtt.cert_file': LARGE,
    'mqtt.key_file': NOT_PLAIN,
    'fleet.password_file': NOT_PLAIN,
    'http.password_file': LARGE,
    [String(pipe)]: NOT_PLAIN,
    [String(device)]: NOT_PLAIN,
    [String(large)]: LARGE,
  }
  expect(places.sort()).toEqual(
    Object.entries(wanted)
      .map((one) => one.join(' '))
      .sort(),
  )
  expect([pipe, device, large].map((file) => mistakesIn(String(file)).length)).toEqual([1, 1, 1])
})
