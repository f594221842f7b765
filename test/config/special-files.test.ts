/** Tests that each file of the configuration that is not a plain file, or is too large, is reported as an error. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
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

test.runIf(hasSpecialFiles)('special and large files are errors, as the configuration, a hub, or a named file', () => {
  const folder = temporaryFolder()
  const hubs = join(folder, 'hubs')
  mkdirSync(hubs)
  const [pipe, large] = [join(hubs, 'pipe.yaml'), join(hubs, 'large.yaml')]
  execFileSync('mkfifo', [pipe])
  writeFileSync(large, Buffer.alloc(2 * 1024 * 1024))
  const config = join(folder, 'hub2mqtt.yaml')
  writeFileSync(
    config,
    `hubs_dir: hubs\nmqtt: {url: 'mqtts://127.0.0.1:1', ca_file: ${pipe}}\nhttp: {password_file: ${large}}\n`,
  )
  const reasonsOf = (file: string) =>
    mistakesIn(file)
      .map((line) => line.replace(/^(\S+?):? .*(it is .*)$/, '$1 $2'))
      .sort()
  const [notPlain, tooLarge] = ['it is not a plain file', 'it is larger than 1 MiB']
  const inFolder = [`${large} ${tooLarge}`, `${pipe} ${notPlain}`]
  expect(reasonsOf(config)).toEqual([...inFolder, `http.password_file ${tooLarge}`, `mqtt.ca_file ${notPlain}`])
  expect([reasonsOf(large), reasonsOf(pipe)]).toEqual(inFolder.map((line) => [line]))
})
