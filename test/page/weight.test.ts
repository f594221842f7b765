import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { builtPage, weighPage } from '../../src/web/ui/build.ts'

const MOST_BYTES = 80_000

test('the page weighs at most 80 kB compressed, and loads nothing from elsewhere', async () => {
  const folder = await builtPage()
  const files = weighPage()
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  console.log(`the page: ${bytes} bytes compressed`)
  expect(bytes).toBeLessThanOrEqual(MOST_BYTES)
  for (const { path } of files) expect(readFileSync(`${folder}/${path}`, 'utf8'), path).not.toContain(process.cwd())
  for (const { path } of files.filter(({ path }) => /\.(html|css)$/.test(path))) {
    expect(readFileSync(`${folder}/${path}`, 'utf8'), path).not.toMatch(
      /(src|href)="(https?:)?\/\/|url\((?!["']?\.\/)|@import/,
    )
  }
})
