import { spawnSync } from 'node:child_process'
import { appendFileSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { copies, fillCopies } from '../../../src/tooling/docs/copies.ts'
import { pages } from '../../../src/tooling/docs/generate.ts'
import { temporaryFolder } from '../../support/at-end.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const folder = temporaryFolder(afterAll)

for (const path of ['src', 'config/demo/apps']) cpSync(join(root, path), join(folder, path), { recursive: true })
// Change the values that the files repeat, so that they differ from the project's.
const manifest = readFileSync(join(root, 'package.json'), 'utf8')
  .replace(/"version": ".*"/, '"version": "9.8.7-rc.1"')
  .replaceAll('git.example', 'new.example')
writeFileSync(join(folder, 'package.json'), manifest)
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
for (const path of new Set([...Object.keys(pages), ...Object.keys(copies)])) {
  const markers = Object.keys(pages[path] ?? {}).map(
    (name) => `<!-- generated:${name} -->\n<!-- /generated:${name} -->\n`,
  )
  const texts = (copies[path] ?? []).map(([text]) => text.replace('{}', 'old'))
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), ['# Title\n', ...markers, ...texts, ''].join('\n'))
}

const docs = (...args: string[]) =>
  spawnSync(process.execPath, ['src/tooling/docs/main.ts', ...args], { cwd: folder, encoding: 'utf8' })

describe('the documentation generator', () => {
  it('names outdated files, updates them, and then names only the one that has changed since', () => {
    const before = docs('--check')
    expect(before.status).toBe(1)
    const generated = ['config/hub2mqtt.schema.json', 'config/hub2mqtt.example.yaml']
    for (const path of [...Object.keys(pages), ...Object.keys(copies), ...generated]) {
      expect(before.stderr).toContain(`${path} is outdated`)
    }
    expect(docs().status).toBe(0)
    expect(readFileSync(join(folder, 'docs/configuration.md'), 'utf8')).toContain('`HUB2MQTT_MQTT_URL`')
    for (const path of Object.keys(copies)) {
      expect(readFileSync(join(folder, path), 'utf8')).toMatch(/9\.8\.7-rc\.1|new\.example/)
    }
    appendFileSync(join(folder, 'config/hub2mqtt.schema.json'), ' ')
    expect(docs('--check')).toMatchObject({
      status: 1,
      stderr: 'config/hub2mqtt.schema.json is outdated; run npm run docs\n',
      stdout: '',
    })
  })

  it('names the place for the version that a file no longer has', () =>
    expect(() => fillCopies('ARG VERSIONS=1\n', copies['Dockerfile'] ?? [])).toThrow('expected ARG VERSION={}'))

  it('refuses unknown arguments', () => expect(docs('--chek').status).toBe(2))

  it('names the page and the missing marker', () => {
    writeFileSync(join(folder, 'docs/mqtt.md'), '# Title\n')
    expect(docs('--check')).toMatchObject({
      status: 1,
      stderr: 'docs/mqtt.md: expected <!-- generated:topics --> and <!-- /generated:topics --> once each\n',
    })
  })
})
