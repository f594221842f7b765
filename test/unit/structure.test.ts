import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'

const files = globSync('src/**/*.ts')
const imports = (file: string) =>
  [...readFileSync(file, 'utf8').matchAll(/(?:from|import)\(? ?'(\.[^']+)'/g)].map(([, path]) =>
    relative('src', join(dirname(file), path ?? '')),
  )
const folder = (path: string) => (path.includes('/') ? path.split('/')[0] : path) ?? path

/** What each folder may import from, besides itself. Leaves are the files beside the folders that import nothing. */
const LEAVES = ['clock.ts', 'backoff.ts']
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  model: [],
  emulator: ['model', 'clock.ts'],
  hub: ['model', ...LEAVES],
  mqtt: LEAVES,
}

describe('the parts know only what they may know', () => {
  test.each(Object.entries(ALLOWED))('src/%s', (name, allowed) => {
    const own = files.filter((file) => file.startsWith(`src/${name}/`))
    expect(own.length).toBeGreaterThan(0)
    for (const file of own) {
      for (const target of imports(file)) expect([name, ...allowed], `${file} → ${target}`).toContain(folder(target))
    }
  })

  test('the emulated hub shares nothing with the hub client, and nobody but the command line knows it', () => {
    for (const file of files) {
      const toEmulator = imports(file).some((target) => folder(target) === 'emulator')
      if (toEmulator) expect(['emulator', 'main.ts'], file).toContain(folder(relative('src', file)))
    }
  })

  test('only the configuration and the program itself read the environment', () => {
    for (const file of files.filter((path) => !/^src\/(config\/|main\.ts)/.test(path))) {
      expect(readFileSync(file, 'utf8'), file).not.toMatch(/process\.env/)
    }
  })
})
