import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** Each declaration of the page's style sheets, but those that define the scales. */
const declarations = globSync('src/web/ui/app/style/*.css').flatMap((file) =>
  [...readFileSync(file, 'utf8').matchAll(/^\s+([a-z-]+): ([^;]+);$/gm)].map(([, name = '', value = '']) => ({
    file,
    name,
    value,
  })),
)
const offenders = (wanted: RegExp, allowed: RegExp) =>
  declarations
    .filter(({ name, value }) => wanted.test(name) && !value.split(/[\s,()/]+/).every((part) => allowed.test(part)))
    .map(({ file, name, value }) => `${file}: ${name}: ${value}`)

test('the page has five sizes and two weights of type', () => {
  expect(declarations.length).toBeGreaterThan(300)
  expect(offenders(/^font-size$/, /^(var|--text-\w+|inherit|)$/)).toEqual([])
  expect(offenders(/^font-weight$/, /^(var|--normal|--bold|)$/)).toEqual([])
})

test('distances are multiples of 4 px, or the 1 or 2 px of a line', () => {
  const distances = declarations.filter(({ name }) => /^(margin|padding|gap)/.test(name))
  for (const { file, name, value } of distances) {
    const lengths = [...value.matchAll(/(\d+)([a-z%]+)/g)].filter(([, , unit]) => unit !== 'vw')
    for (const [, count, unit] of lengths) {
      const isOnScale = unit === 'px' && (Number(count) <= 2 || Number(count) % 4 === 0)
      expect(isOnScale, `${file}: ${name}: ${value}`).toBe(true)
    }
  }
})
