import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { EVENT_TYPES, GUARD_EVENT_TYPES, HUB_EVENT_TYPES } from '../../../src/contract/events.ts'
import { CONTRACT_VERSION } from '../../../src/contract/schemas.ts'
import { pages } from '../../../src/tooling/docs/generate.ts'

const documents = globSync(['*.md', '.github/*.md', 'docs/**/*.md', 'test/**/*.md', 'config/**/*.md']).sort()
const text = (path: string) => readFileSync(path, 'utf8')
const withoutCode = (markdown: string) => markdown.replaceAll(/^ *```.*?^ *```$/gms, '')

/** Returns the anchors that GitHub derives from the headings of a document, and those that the document itself sets. */
function anchors(path: string): Set<string> {
  const found = new Set([...text(path).matchAll(/^<a id="([\w-]+)"><\/a>$/gm)].map(([, id = '']) => id))
  for (const [, heading = ''] of withoutCode(text(path)).matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-')
    let anchor = slug
    for (let n = 1; found.has(anchor); n += 1) anchor = `${slug}-${n}`
    found.add(anchor)
  }
  return found
}

const linksOf = (path: string) =>
  [...withoutCode(text(path)).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^https?:/.test(target))

/** Former addresses of pages that are now in `docs/internals/`. */
const MOVED = ['architecture', 'benchmarks', 'conformance', 'decisions', 'reliability'].map((name) => `docs/${name}.md`)

it.each(MOVED)('a page that has moved still has a line at %s with a link to its new address', (path) => {
  const [, title = '', target = ''] = /^# (.+)\n\n.*\]\((internals\/.+)\)\.\n$/.exec(text(path)) ?? []
  expect(text(`docs/${target}`)).toContain(`# ${title}\n`)
})

describe('every document', () => {
  it.each(documents)('%s links only to files and headings that exist', (path) => {
    for (const link of linksOf(path)) {
      const [file = '', anchor] = link.split('#')
      const target = file === '' ? path : join(dirname(path), file)
      expect(existsSync(target), `${path} → ${link}`).toBe(true)
      if (anchor !== undefined) expect([...anchors(target)], `${path} → ${link}`).toContain(anchor)
    }
  })

  it('names only npm scripts that exist', () => {
    const { scripts } = JSON.parse(text('package.json'))
    for (const path of documents) {
      for (const [, name = ''] of text(path).matchAll(/npm run ([a-z][a-z:-]*)/g)) {
        expect(Object.keys(scripts), path).toContain(name)
      }
    }
  })

  it('writes `npx hub2mqtt` only for an installed package: elsewhere npm would download any package with that name', () => {
    const writing = documents.filter((path) => text(path).includes('npx hub2mqtt'))
    expect(writing).toEqual(['docs/install.md', 'docs/remove.md'])
  })

  it('has each generated section on one page', () => {
    const found = documents.flatMap((path) =>
      [...text(path).matchAll(/<!-- generated:([\w-]+) -->/g)].map(([, name]) => `${path} ${name}`),
    )
    const wanted = Object.entries(pages).flatMap(([path, names]) => Object.keys(names).map((name) => `${path} ${name}`))
    expect(found.sort()).toEqual(wanted.sort())
  })
})

describe('a page for users', () => {
  const NAMES = 'install configuration hubs mqtt home-assistant guardian operations troubleshooting'
  const PAGES = NAMES.split(' ').map((name) => `docs/${name}.md`)

  it.each(PAGES)('%s has at most 12 KB, and 24 KB with its generated tables', (path) => {
    const page = text(path)
    const own = page.replaceAll(/<!-- generated:([\w-]+) -->.*?<!-- \/generated:\1 -->/gs, '')
    expect(Buffer.byteLength(own)).toBeLessThanOrEqual(12 * 1024)
    expect(Buffer.byteLength(page)).toBeLessThanOrEqual(24 * 1024)
  })
})

describe('the table of commands', () => {
  it('names the only value of a key', () => expect(text('docs/mqtt.md')).toContain('forget?: true}'))
})

describe('the README', () => {
  it('has at most 10,000 bytes', () => expect(Buffer.byteLength(text('README.md'))).toBeLessThanOrEqual(10_000))

  it('links to every page', () => {
    const linked = linksOf('README.md').map((link) => link.split('#')[0])
    for (const path of [...globSync('docs/**/*.md'), 'CHANGELOG.md'].filter((path) => !MOVED.includes(path)))
      expect(linked).toContain(path)
  })

  it.each([
    'docs/install.md#upgrade',
    'docs/troubleshooting.md#hub2mqtt-doctor',
    'docs/troubleshooting.md#report-a-bug',
    'docs/configuration.md#tls',
    'docs/configuration.md#publish-a-setting',
    'docs/configuration.md#allow-uninstalling',
    'docs/home-assistant.md#tell-of-crashes',
    'docs/operations.md#demo',
    'docs/operations.md#on-one-machine',
  ])('links to %s with one click', (target) => expect(linksOf('README.md')).toContain(target))

  it('has one line each to try it and to run all tests', () => {
    const lines = text('README.md').split('\n')
    for (const command of ['npm ci && npm run demo', 'npm ci && npm test']) {
      expect(lines.filter((line) => line.startsWith(command))).toHaveLength(1)
    }
  })
})

it.each([...EVENT_TYPES, ...GUARD_EVENT_TYPES, ...HUB_EVENT_TYPES])('docs/mqtt.md names the event type %s', (type) =>
  expect(text('docs/mqtt.md')).toContain(`\`${type}\``),
)

describe('docs/internals/architecture.md', () => {
  const page = text('docs/internals/architecture.md')
  /** Matches only complete paths, because diagrams contain abbreviated paths, such as `src/…`. */
  const paths = [...withoutCode(page).matchAll(/`((?:src|test)\/[\w/.-]+)`/g)].map(([, path = '']) => path)

  it.each([...new Set(paths)])('names %s, which exists', (path) => expect(existsSync(path)).toBe(true))
})

describe('docs/internals/decisions.md', () => {
  const page = text('docs/internals/decisions.md')
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(text('package.json'))
  const inTables = page.split('\n').filter((line) => line.startsWith('| `'))
  const reasoned = inTables.flatMap((line) => (line.split('|')[1] ?? '').match(/(?<=`)[^`, ]+(?=`)/g) ?? [])

  it('gives a reason for every dependency, and for none that was removed', () => {
    const named = [dependencies, devDependencies, optionalDependencies].flatMap((group) => Object.keys(group))
    expect(reasoned.sort()).toEqual(named.sort())
  })
})

describe('docs/compatibility.md', () => {
  const page = text('docs/compatibility.md')
  const { version, engines } = JSON.parse(text('package.json'))

  it('names the contract of this version', () => {
    expect(page).toContain(`Its current version is **${CONTRACT_VERSION}**`)
    const minor = version.split('.', 2).join('.')
    expect(page).toMatch(new RegExp(`^\\| .*\\b${minor.replace('.', '\\.')} \\| ${CONTRACT_VERSION} \\|$`, 'm'))
  })

  it('names the versions that the tests and the launcher use', () => {
    const versions = [...text('test/home-assistant/support/versions.ts').matchAll(/name: '([\d.]+)'/g)].map(
      ([, name]) => name,
    )
    expect(page).toContain(`| ${versions.join(', ')} |`)
    expect(text('src/bin.js')).toContain('const NEEDED = 24\n')
    expect(page).toContain(
      `| 24; the npm package includes it, and can be started with Node ${engines.node.match(/\d+/)} or newer |`,
    )
  })
})

it('CHANGELOG.md has a section for this version, and one for the next one', () => {
  const { version } = JSON.parse(text('package.json'))
  const sections = [...text('CHANGELOG.md').matchAll(/^## \[(.+?)\]/gm)].map(([, name]) => name)
  expect(sections.slice(0, 2)).toEqual(['Unreleased', version])
})
