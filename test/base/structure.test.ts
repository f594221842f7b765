import { globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parseSync } from 'vite'
import { describe, expect, test } from 'vitest'
import { MADE_OF } from '../../src/web/ui/build.ts'

const exclude = ['src/web/ui/dist/**']
const files = globSync('src/**/*.{ts,tsx}', { exclude })
const PRODUCT = ['base', 'hub', 'mqtt', 'contract', 'bridge']

function importsOf(file: string): [target: string, typesOnly: boolean][] {
  const statements = readFileSync(file, 'utf8').matchAll(
    /(?:^(?:import|export) (type )?[^;'"]*?from |import\(|^import )'(\.[^']+)'/gms,
  )
  return [...statements].map(([, type, path = '']) => [relative('src', join(dirname(file), path)), type !== undefined])
}

const linesOf = (text: string) => text.split('\n').length - 1

/** Returns the first folder of a path below `src`, or the file name of a file that is directly in `src`. */
const folderOf = (path: string) => path.split('/')[0] ?? ''

/** The imports that `docs/internals/architecture.md` permits each folder, in the order of its table. */
const rows = readFileSync('docs/internals/architecture.md', 'utf8').matchAll(
  /^\| `src\/([a-z-]+)\/` \|[^|]*\| (.*) \|$/gm,
)
const allowed = new Map([...rows].map(([, name = '', cell = '']) => [name, cell]))
const order = [...allowed.keys()]
const foldersIn = (text: string) => [...text.matchAll(/`([a-z-]+)`/g)].map(([, one = '']) => one)

describe('each folder imports only from permitted folders', () => {
  test('there are fourteen folders, each with its row in docs/internals/architecture.md, and three files next to them', () => {
    const entries = readdirSync('src', { withFileTypes: true })
    const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
    expect(order.toSorted()).toEqual(folders.sort())
    expect(folders).toHaveLength(14)
    const beside = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name)
    expect(beside.sort()).toEqual(['app.ts', 'bin.js', 'main.ts'])
  })

  test.each(order)('src/%s imports what its row names and nothing else, all from folders above it', (name) => {
    const cell = allowed.get(name) ?? ''
    const own = files.filter((file) => file.startsWith(`src/${name}/`))
    // Leave out `app.ts`, the daemon, which has its own rule because it imports nearly all folders, and data.
    const isLeftOut = (target: string) => target === 'app.ts' || target.endsWith('.json')
    const imports = own.flatMap(importsOf).filter(([target]) => folderOf(target) !== name && !isLeftOut(target))
    const above = order.slice(0, order.indexOf(name))
    for (const [target] of imports) expect(above, target).toContain(folderOf(target))
    if (cell === 'everything') return
    const [whole = [], types = []] = cell.split('types of').map(foldersIn)
    for (const [target, typesOnly] of imports) {
      expect(typesOnly ? [...whole, ...types] : whole, target).toContain(folderOf(target))
    }
    const used = imports.map(([target]) => folderOf(target))
    for (const one of [...whole, ...types]) expect(used, `${name} needs no ${one}`).toContain(one)
  })

  test('the product is five folders that import nothing else', () => {
    for (const name of PRODUCT) expect(PRODUCT).toEqual(expect.arrayContaining(foldersIn(allowed.get(name) ?? '')))
  })

  test('no file imports itself, directly or through others', () => {
    const values = new Map(
      files.map((file) => [
        relative('src', file),
        importsOf(file).flatMap(([target, typesOnly]) => (typesOnly ? [] : [target])),
      ]),
    )
    // Remove files that import no remaining file, because they are not part of a cycle.
    for (;;) {
      const free = [...values].filter(([, targets]) => !targets.some((target) => values.has(target)))
      if (free.length === 0) break
      for (const [file] of free) values.delete(file)
    }
    expect([...values.keys()]).toEqual([])
  })

  test('only the commands emulate and demo and the tooling import the emulated hub', () => {
    const knowing = /^src\/(emulator|tooling)\/|^src\/cli\/(emulate|demo)\.ts$/
    for (const file of files.filter((path) => !knowing.test(path))) {
      for (const [target] of importsOf(file)) expect(folderOf(target), file).not.toBe('emulator')
    }
  })

  test('only the command run imports the daemon', () => {
    const importing = files.filter((file) => importsOf(file).some(([target]) => target === 'app.ts'))
    expect(importing).toEqual(['src/cli/run.ts'])
  })

  test('the page is built again after a change of any module that it imports', () => {
    const found = new Set(['src/web/ui/app/main.tsx'])
    for (const file of found)
      for (const [target, typesOnly] of importsOf(file)) if (!typesOnly) found.add(`src/${target}`)
    expect(globSync(MADE_OF)).toEqual(expect.arrayContaining([...found]))
  })

  test('few interfaces only list the parameters of one constructor: parameters or Pick would suffice', () => {
    const listing = files.flatMap((file) => [
      ...readFileSync(file, 'utf8').matchAll(/interface \w*(Options|Context|Dependencies)\b/g),
    ])
    expect(listing.length).toBeLessThanOrEqual(50)
  })

  test('a file has at most 400 lines', () => {
    const tooLong = globSync('src/**/*.{ts,tsx,js,css}', { exclude })
      .map((file) => [file, linesOf(readFileSync(file, 'utf8'))] as const)
      .filter(([, lines]) => lines > 400)
    expect(tooLong).toEqual([])
  })

  test('a function has at most 60 lines of its own, except the one that puts the daemon together', () => {
    const tooLong: string[] = []
    for (const file of files.filter((path) => path !== 'src/app.ts')) {
      const text = readFileSync(file, 'utf8')
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
