import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { temporaryFolder } from '../support/at-end.ts'
import { available } from '../support/skipped.ts'
import { PEM, PEM_KEY } from './support.ts'

const folder = temporaryFolder(afterAll)
chmodSync(folder, 0o755)

function write(path: string, text: string, mode: number): string {
  const file = join(folder, path)
  writeFileSync(file, text)
  chmodSync(file, mode)
  return file
}

const warnings = (yaml: string, mode = 0o600) =>
  loadConfig({ file: write('hub2mqtt.yaml', yaml, mode), env: {} }).warnings

const named = (key: string) => `hubs: {home: {url: "http://10.0.0.1", api_key_file: ${key}}}\n`
const inline = 'hubs: {home: {url: "http://10.0.0.1", api_key: the-key}}\n'

const hasModes = available(
  process.platform !== 'win32',
  'the tests of who may read a file',
  'Windows has no modes of files',
)

describe.runIf(hasModes)('a secret in a file', () => {
  it('that every user can read causes a warning that names the option and not the file', () => {
    expect(warnings(named(write('key', 'the-key', 0o644)))).toEqual([
      expect.stringMatching(/^hubs\.home\.api_key_file \(.* line 1\): every user .* chmod 600 it$/),
    ])
  })

  it('that only its owner and group can read is accepted', () => {
    expect(warnings(named(write('key', 'the-key', 0o640)))).toEqual([])
  })

  it('in a folder that other users cannot enter is accepted', () => {
    mkdirSync(join(folder, 'closed'))
    const file = write('closed/key', 'the-key', 0o644)
    chmodSync(join(folder, 'closed'), 0o700)
    expect(warnings(named(file))).toEqual([])
  })

  it('causes a warning if it is the configuration file itself', () => {
    expect(warnings(inline, 0o644)).toEqual([
      expect.stringMatching(
        /^hubs\.home\.api_key \(.*\): every user of this machine can read this file; chmod 600 it$/,
      ),
    ])
    expect(warnings(inline, 0o600)).toEqual([])
    expect(warnings(named(write('key', 'the-key', 0o600)), 0o644)).toEqual([])
  })

  it('causes a warning if it is the private key of a certificate', () => {
    const tls = `mqtt: {url: "mqtts://b", cert_file: ${write('cert.pem', PEM, 0o644)}, key_file: ${write('key.pem', PEM_KEY, 0o644)}}\n`
    expect(warnings(`${named(write('key', 'the-key', 0o600))}${tls}`)).toEqual([
      expect.stringMatching(/^mqtt\.key_file .*every user/),
    ])
  })
})
