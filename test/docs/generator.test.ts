import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempDisposableSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { pages } from '../../src/docs/generate.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const { path: folder, remove } = mkdtempDisposableSync(join(tmpdir(), 'hub2mqtt-docs-'))
afterAll(remove)

cpSync(join(root, 'src'), join(folder, 'src'), { recursive: true })
cpSync(join(root, 'package.json'), join(folder, 'package.json'))
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
mkdirSync(join(folder, 'docs'))
for (const [path, sections] of Object.entries(pages)) {
  const markers = Object.keys(sections).map((name) => `<!-- generated:${name} -->\n<!-- /generated:${name} -->\n`)
  writeFileSync(join(folder, path), `# Title\n\n${markers.join('\n')}`)
}

const docs = (...args: string[]) =>
  spawnSync(process.execPath, ['src/docs/main.ts', ...args], { cwd: folder, encoding: 'utf8' })

describe('the documentation generator', () => {
  it('names what is not current, writes it, and is then content', () => {
    const before = docs('--check')
    expect(before.status).toBe(1)
    for (const path of [...Object.keys(pages), 'config/hub2mqtt.schema.json', 'config/hub2mqtt.example.yaml']) {
      expect(before.stderr).toContain(`${path} is not current`)
    }
    expect(docs().status).toBe(0)
    expect(readFileSync(join(folder, 'docs/configuration.md'), 'utf8')).toContain('`HUB2MQTT_MQTT_URL`')
    expect(docs('--check')).toMatchObject({ status: 0, stderr: '', stdout: '' })
    expect(docs()).toMatchObject({ status: 0, stdout: '' })
  })

  it('names the one file that drifted', () => {
    docs()
    appendFileSync(join(folder, 'config/hub2mqtt.schema.json'), ' ')
    expect(docs('--check')).toMatchObject({
      status: 1,
      stderr: 'config/hub2mqtt.schema.json is not current; run npm run docs\n',
    })
  })

  it('refuses what it does not know', () => expect(docs('--chek').status).toBe(2))

  it('says which page lacks which marker', () => {
    writeFileSync(join(folder, 'docs/mqtt.md'), '# Title\n')
    expect(docs('--check')).toMatchObject({
      status: 1,
      stderr: 'docs/mqtt.md: expected <!-- generated:topics --> and <!-- /generated:topics --> once each\n',
    })
  })
})
