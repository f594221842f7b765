import { globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parseSync } from 'vite'
import { describe, expect, test } from 'vitest'

const files = globSync('src/**/*.{ts,tsx}', { exclude: ['src/web/ui/dist/**'] })

/** Folder → whether only types are taken from it. */
function importsOf(file: string): [target: string, typesOnly: boolean][] {
  const statements = readFileSync(file, 'utf8').matchAll(
    /(?:^(?:import|export) (type )?[^;'"]*?from |import\(|^import )'(\.[^']+)'/gms,
  )
  return [...statements].map(([, type, path = '']) => [relative('src', join(dirname(file), path)), type !== undefined])
}

const linesOf = (text: string) => text.split('\n').length - 1

const folderOf = (path: string) => (path.includes('/') ? (path.split('/')[0] ?? '') : '')

/** What `docs/internals/architecture.md` lets each folder import: in the order of the table, each from those above it. */
const rows = readFileSync('docs/internals/architecture.md', 'utf8').matchAll(
  /^\| `src\/([a-z]+)\/` \|[^|]*\| (.*) \|$/gm,
)
const allowed = new Map([...rows].map(([, name = '', cell = '']) => [name, cell]))
const order = [...allowed.keys()]
const foldersIn = (text: string) => [...text.matchAll(/`(\w+)`/g)].map(([, one = '']) => one)

describe('the folders of the source know only what they may know', () => {
  test('every folder has its line', () => {
    const folders = readdirSync('src', { withFileTypes: true }).filter((entry) => entry.isDirectory())
    expect(order.toSorted()).toEqual(folders.map(({ name }) => name).sort())
  })

  test.each(order)('src/%s', (name) => {
    const cell = allowed.get(name) ?? ''
    if (cell === 'everything') return
    const [whole = [], types = []] = cell.split('types of').map(foldersIn)
    // No two folders need each other, as all arrows point the same way.
    for (const one of [...whole, ...types]) expect(order.indexOf(one)).toBeLessThan(order.indexOf(name))
    const own = files.filter((file) => file.startsWith(`src/${name}/`))
    const imports = own.flatMap(importsOf).filter(([target]) => folderOf(target) !== name && target !== 'version.ts')
    for (const [target, typesOnly] of imports) {
      expect(typesOnly ? [...whole, ...types] : whole, target).toContain(folderOf(target))
    }
    const used = imports.map(([target]) => folderOf(target))
    for (const one of [...whole, ...types]) expect(used, `${name} needs no ${one}`).toContain(one)
  })

  test('nobody but the program itself and its documentation knows the emulated hub', () => {
    for (const file of files.filter((path) => !/^src\/(emulator|docs)\//.test(path) && path !== 'src/main.ts')) {
      for (const [target] of importsOf(file)) expect(folderOf(target), file).not.toBe('emulator')
    }
  })

  test('few interfaces list what one constructor takes: parameters, or a part of what there is already, say it too', () => {
    const listing = files.flatMap((file) => [
      ...readFileSync(file, 'utf8').matchAll(/interface \w*(Options|Context|Dependencies)\b/g),
    ])
    expect(listing.length).toBeLessThanOrEqual(50)
  })

  test('a file of the core has at most 400 lines, and a function 60 of its own', () => {
    const tooLong: string[] = []
    for (const file of files.filter((path) => /^src\/(contract|hub|mqtt|bridge|guard|base)\//.test(path))) {
      const text = readFileSync(file, 'utf8')
      if (linesOf(text) > 400) tooLong.push(file)
      const visit = (node: object): number => {
        const { type, start, end } = node as { type?: string; start: number; end: number }
        const within = Object.values(node)
          .flat()
          .filter((one) => typeof one === 'object' && one !== null)
        const inner = within.reduce((sum, one) => sum + visit(one), 0)
        if (type === undefined || !/^(Arrow)?Function(Declaration|Expression)?$/.test(type)) return inner
        const all = linesOf(text.slice(start, end))
        if (all - inner > 60) tooLong.push(`${file}: ${text.slice(start, start + 40)}`)
        return all
      }
      visit(parseSync(file, text).program)
    }
    expect(tooLong).toEqual([])
  })

  test('only the configuration and the program itself read the environment', () => {
    for (const file of files.filter((path) => !/^src\/(config\/|main\.ts)/.test(path))) {
      expect(readFileSync(file, 'utf8'), file).not.toMatch(/process\.env/)
    }
  })
})
