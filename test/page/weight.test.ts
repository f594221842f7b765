import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect, test } from 'vitest'
import { builtPage, weighPage } from '../../src/web/ui/build.ts'

const MOST_BYTES = 80_000
const MOST_BYTES_OF_CHARTS = 22_000
const MOST_BYTES_OF_A_LANGUAGE = 10_000
const LANGUAGES = globSync('src/web/ui/app/languages/*.json').map((path) => `assets/${basename(path, '.json')}-`)

test('the page weighs at most 80 kB compressed, its library of charts 22 kB, a language 10 kB, and loads nothing from elsewhere', async () => {
  const folder = await builtPage()
  const files = weighPage()
  const partOf = (path: string) => (/uplot/i.test(path) ? 'charts' : LANGUAGES.find((start) => path.startsWith(start)))
  const { charts = [], page = [], ...languages } = Object.groupBy(files, ({ path }) => partOf(path) ?? 'page')
  const weight = (some: typeof files) => some.reduce((sum, file) => sum + file.bytes, 0)
  console.log(`the page: ${weight(page)} bytes compressed, charts ${weight(charts)}`)
  expect(charts).toHaveLength(1)
  expect(Object.keys(languages).toSorted()).toEqual(LANGUAGES.toSorted())
  for (const files of Object.values(languages))
    expect(weight(files ?? [])).toBeLessThanOrEqual(MOST_BYTES_OF_A_LANGUAGE)
  expect(weight(page)).toBeLessThanOrEqual(MOST_BYTES)
  expect(weight(charts)).toBeLessThanOrEqual(MOST_BYTES_OF_CHARTS)
  for (const { path } of files) expect(readFileSync(`${folder}/${path}`, 'utf8'), path).not.toContain(process.cwd())
  for (const { path } of files.filter(({ path }) => /\.(html|css)$/.test(path))) {
    expect(readFileSync(`${folder}/${path}`, 'utf8'), path).not.toMatch(
      /(src|href)="(https?:)?\/\/|url\((?!["']?\.\/)|@import/,
    )
  }
})
