import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const read = (files: string) =>
  globSync(files)
    .toSorted()
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n')
const styles = read('src/web/ui/app/style/*.css')
  .replaceAll(/\/\*.*?\*\//gs, '')
  .replaceAll(/@import [^;]+;/g, '')
const sources = read('src/web/ui/app/**/*.{ts,tsx}')

/** The names and values of all declarations, including nested ones and those that span several lines. */
const declarations = [...styles.matchAll(/(?<=[{};]\s*)([a-z-]+):\s*([^;{}]+);/g)].map(
  ([, name = '', value = '']) => [name, value.replaceAll(/\s+/g, ' ')] as const,
)
const selectors = [...styles.matchAll(/(?<=^|[{};])[^{};]+(?=\{)/g)].map(([one]) => one.trim())

/** Values that are permitted in addition to `allowed`. */
const ANYWAY = ['0', 'auto', 'inherit']
const others = (property: RegExp, allowed: RegExp) =>
  declarations
    .filter(([name]) => property.test(name))
    .filter(([, value]) => !value.split(' ').every((part) => ANYWAY.includes(part) || allowed.test(part)))
    .map((declaration) => declaration.join(': '))
const valuesOf = (property: RegExp) =>
  [...styles.matchAll(/(--[\w-]+): ([^;]+);/g)].flatMap(([, name = '', value = '']) =>
    property.test(name) ? value : [],
  )

test('the page has five sizes and two weights of type', () => {
  expect(declarations.length).toBeGreaterThan(400)
  expect(valuesOf(/^--text-/)).toEqual(['12px', '13px', '14px', '16px', '20px'])
  expect(valuesOf(/^--(normal|bold)$/)).toEqual(['400', '600'])
  expect(others(/^font-size$/, /^var\(--text-(xs|s|m|l|xl)\)$/)).toEqual([])
  expect(others(/^font-weight$/, /^var\(--(normal|bold)\)$/)).toEqual([])
  // Forbid the shorthand `font`, which would set both size and weight.
  expect(others(/^font$/, /^$/)).toEqual([])
})

test('the distances on the page are 4 to 24 px in steps of 4, or the 2 px of a gap between lines', () => {
  expect(valuesOf(/^--(hair|s\d)$/)).toEqual(['2px', '4px', '8px', '12px', '16px', '20px', '24px'])
  const multiple = String.raw`var\(--(hair|s[1-6])\)`
  const computed = String.raw`calc\((-1|2) \* ${multiple}\)`
  const other = String.raw`\d+%|env\([\w-]+\)|var\(--(side|gutter)\)`
  const values = declarations
    .filter(([name]) => /^((margin|padding)(-|$)|(row-|column-)?gap$)/.test(name))
    .map(([name, value]) => `${name}: ${value}`)
  const allowed = new RegExp(`^[a-z-]+:( (0|auto|${multiple}|${computed}|${other}))+$`)
  expect(values.length).toBeGreaterThan(80)
  expect(values.filter((value) => !allowed.test(value))).toEqual([])
})

test('the page has one accent colour: a colour that does not mark a state is the accent, or has no hue', () => {
  const coloured = [...styles.matchAll(/(--[\w-]+): light-dark\(#(\w\w)(\w\w)(\w\w), /g)].flatMap(
    ([, name = '', ...parts]) => {
      const levels = parts.slice(0, 3).map((part) => Number.parseInt(part, 16))
      return Math.max(...levels) - Math.min(...levels) > 32 ? name : []
    },
  )
  expect(coloured).toEqual(['--accent', '--accent-ground', '--ok', '--warn', '--bad', '--bad-ground'])
  expect(others(/^(color|background|stroke|fill|border(-color)?)$/, /^[^#]*$/)).toEqual([])
})

test('each class and each custom property of its style is used, and only tests use a class without style', () => {
  const styled = new Set(selectors.flatMap((one) => [...one.matchAll(/\.([a-z][\w-]*)/g)].map(([, name = '']) => name)))
  const words = new Set(
    [...sources.matchAll(/['"`]([^'"`\n]*)['"`]/g)].flatMap(([, text = '']) => text.split(/[^\w-]+/)),
  )
  // Ignore the classes of the chart library (`u-`) and of the columns (`c-`).
  const unused = [...styled].filter((name) => !words.has(name) && !/^(uplot$|u-|c-)/.test(name))
  expect(unused).toEqual([])
  const given = [...sources.matchAll(/ class="([\w -]+)"/g)].flatMap(([, names = '']) => names.split(' '))
  const sought = read('test/page/*.ts')
  expect(given.filter((name) => !styled.has(name) && !sought.includes(`.${name}`) && !name.startsWith('c-'))).toEqual(
    [],
  )
  const defined = [...styles.matchAll(/(--[\w-]+):/g)].map(([, name = '']) => name)
  const used = (name: string) => styles.includes(`var(${name}`) || sources.includes(`'${name}'`)
  expect(defined.filter((name) => !used(name))).toEqual([])
})
