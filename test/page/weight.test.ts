import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { builtPage, weighPage } from '../../src/web/ui/build.ts'

const MOST_BYTES = 80_000
const MOST_BYTES_OF_CHARTS = 22_000

test('the page weighs at most 80 kB compressed, its library of charts 22 kB, and loads nothing from elsewhere', async () => {
  const folder = await builtPage()
  const files = weighPage()
  const [charts = [], page = []] = [true, false].map((wanted) =>
    files.filter(({ path }) => /uplot/i.test(path) === wanted),
  )
  const weight = (some: typeof files) => some.reduce((sum, file) => sum + file.bytes, 0)
  console.log(`the page: ${weight(page)} bytes compressed, charts ${weight(charts)}`)
  expect(charts).toHaveLength(1)
  expect(weight(page)).toBeLessThanOrEqual(MOST_BYTES)
  expect(weight(charts)).toBeLessThanOrEqual(MOST_BYTES_OF_CHARTS)
  for (const { path } of files) expect(readFileSync(`${folder}/${path}`, 'utf8'), path).not.toContain(process.cwd())
  for (const { path } of files.filter(({ path }) => /\.(html|css)$/.test(path))) {
    expect(readFileSync(`${folder}/${path}`, 'utf8'), path).not.toMatch(
      /(src|href)="(https?:)?\/\/|url\((?!["']?\.\/)|@import/,
    )
  }
})
