import { createServer } from 'node:http'
import { describe, expect, test } from 'vitest'
import { listening } from '../support/at-end.ts'
import { choose, KNOWN, published } from './support/versions.ts'

const DAY = 86_400_000
const NEWER = { name: '2026.12.1', python: KNOWN.python }
const BETA = { name: '2027.1.0b3', python: KNOWN.python }
const names = (...[wanted, onPyPI, now = 0]: [string?, (typeof KNOWN)[]?, number?]) =>
  choose(wanted, onPyPI ?? [], now, ({ python }) => python === KNOWN.python).map(({ name }) => name)

async function readFrom(body: string) {
  const port = await listening(createServer((_, answer) => answer.end(body)))
  return await published(`http://127.0.0.1:${port}/`)
}

describe('the versions of Home Assistant that are tested', () => {
  test('are the newest, and one of the older ones in turn', () => {
    const days = Array.from({ length: 6 }, (_, day) => names(undefined, [NEWER, BETA], day * DAY + 1))
    expect(days.map(([older]) => older)).toEqual([
      ...['2025.4.4', '2026.6.4', '2026.10.4'],
      ...['2025.4.4', '2026.6.4', '2026.10.4'],
    ])
    expect(new Set(days.map((day) => day.slice(1).join()))).toEqual(new Set(['2026.12.1']))
  })

  test('are all of them, a beta, or a single one on request', () => {
    expect(names('all', [NEWER, BETA])).toEqual(['2025.4.4', '2026.6.4', '2026.10.4', '2026.12.1'])
    expect(names('beta', [NEWER, BETA])).toEqual(['2027.1.0b3'])
    expect(names('2026.12.1', [NEWER])).toEqual(['2026.12.1'])
    expect(() => names('2026.12.2', [NEWER])).toThrow('2026.12.2')
  })

  test.each([
    ['PyPI has none', []],
    ['PyPI has older ones', [{ name: '2026.9.4', python: KNOWN.python }]],
    ['PyPI has only a beta of the same', [{ name: `${KNOWN.name}b2`, python: KNOWN.python }]],
    ['newer ones need a Python that cannot be installed', [{ name: '2030.1.0', python: '9.9' }]],
  ])('include the newest known version if %s', (_, onPyPI) => {
    expect(names('beta', onPyPI)).toEqual([KNOWN.name])
  })

  test('are read from the answer of PyPI, without withdrawn releases', async () => {
    const file = (name: string, yanked: unknown = false) => ({ filename: name, yanked, 'requires-python': '>=3.14.2' })
    const wheel = (version: string) => `homeassistant-${version}-py3-none-any.whl`
    const files = [
      file(wheel('2026.12.0b1')),
      file(wheel('2026.12.0'), 'broken'),
      file('homeassistant-2026.12.1.tar.gz'),
    ]
    expect(await readFrom(JSON.stringify({ files }))).toEqual([{ name: '2026.12.0b1', python: '3.14' }])
  })

  test('are the known ones if PyPI does not answer, or sends something else', async () => {
    expect(await published('http://127.0.0.1:1/')).toEqual([])
    expect(await readFrom('<html>')).toEqual([])
    expect(await readFrom('{}')).toEqual([])
  })
})
