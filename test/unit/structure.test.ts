import { globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'

const files = globSync('src/**/*.ts')

/** Folder → whether only types are taken from it. */
function importsOf(file: string): [target: string, typesOnly: boolean][] {
  const statements = readFileSync(file, 'utf8').matchAll(
    /(?:^(?:import|export) (type )?[^;'"]*?from |import\(|^import )'(\.[^']+)'/gms,
  )
  return [...statements].map(([, type, path = '']) => [relative('src', join(dirname(file), path)), type !== undefined])
}

const folderOf = (path: string) => (path.includes('/') ? (path.split('/')[0] ?? '') : '')

/**
 * What each folder may import from, besides itself: always further down this list, so that no two need each other.
 * After a `:`, types only.
 */
const ALLOWED: Readonly<Record<string, string>> = {
  docs: 'cli bridge config contract hub',
  cli: 'config contract mqtt base',
  http: 'metrics health config log base : contract',
  reload: 'config contract : log mqtt hub',
  metrics: 'health contract model : hub mqtt',
  health: ': contract hub mqtt base',
  bridge: 'contract hub model base : config mqtt log',
  config: 'contract log base : mqtt',
  contract: 'hub model log base : mqtt',
  emulator: 'base',
  mqtt: 'base',
  hub: 'model base',
  log: '',
  model: 'base',
  base: '',
}
const order = Object.keys(ALLOWED)

describe('the folders of the source know only what they may know', () => {
  test('every folder has its line', () => {
    const folders = readdirSync('src', { withFileTypes: true }).filter((entry) => entry.isDirectory())
    expect(order.toSorted()).toEqual(folders.map(({ name }) => name).sort())
  })

  test.each(order)('src/%s', (name) => {
    const [whole = '', types = ''] = (ALLOWED[name] ?? '').split(':')
    const may = (list: string) => list.split(' ').filter((one) => one !== '')
    for (const allowed of [...may(whole), ...may(types)])
      expect(order.indexOf(allowed)).toBeGreaterThan(order.indexOf(name))
    const own = files.filter((file) => file.startsWith(`src/${name}/`))
    expect(own.length).toBeGreaterThan(0)
    for (const file of own) {
      for (const [target, typesOnly] of importsOf(file)) {
        // A row of docs reads the version, which stands beside the folders.
        if (target === 'version.ts') continue
        const allowed = [name, ...may(whole), ...(typesOnly ? may(types) : [])]
        expect(allowed, `${file} → ${target}`).toContain(folderOf(target))
      }
    }
  })

  test('nobody but the program itself knows the emulated hub', () => {
    for (const file of files.filter((path) => !path.startsWith('src/emulator/') && path !== 'src/main.ts')) {
      for (const [target] of importsOf(file)) expect(folderOf(target), file).not.toBe('emulator')
    }
  })

  test('only the configuration and the program itself read the environment', () => {
    for (const file of files.filter((path) => !/^src\/(config\/|main\.ts)/.test(path))) {
      expect(readFileSync(file, 'utf8'), file).not.toMatch(/process\.env/)
    }
  })
})
