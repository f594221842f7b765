import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { english, namesIn } from '../../support/page-texts.ts'

const FILE = v.record(v.string(), v.union([v.string(), v.record(v.string(), v.string())]))
const codes = globSync('src/web/ui/app/languages/*.json').map((path) => basename(path, '.json'))
const textsOf = (code: string) =>
  v.parse(FILE, JSON.parse(readFileSync(`src/web/ui/app/languages/${code}.json`, 'utf8')))

/** Words that are the same in several languages. All other texts must differ from the English text. */
const INTERNATIONAL = new Set(
  `app apps assistant bridge cpu crash crashes d details filter firmware flows home hub hub2mqtt hubs id json live name
  node offline online patch payload ping red sdk shell topic topics type update updates version`.split(/\s+/),
)
const wordsIn = (text: string) => text.replace(/\{\w+\}/g, ' ').match(/[\p{L}\d]+/gu) ?? []
const formsOf = (text: string | Readonly<Record<string, string>>) =>
  typeof text === 'string' ? [text] : Object.values(text)

test('the page has Dutch and German, and a row that loads the file of each language', () => {
  expect(codes).toEqual(expect.arrayContaining(['de', 'nl']))
  const rows = readFileSync('src/web/ui/app/languages.ts', 'utf8').matchAll(/import\('\.\/languages\/(\w+)\.json'/g)
  expect([...rows].map(([, code]) => code).toSorted()).toEqual(codes.toSorted())
})

describe.each(codes)('the texts in %s', (code) => {
  const texts = textsOf(code)
  const categories = new Intl.PluralRules(code).resolvedOptions().pluralCategories.toSorted()

  test('are those of the page: none is missing, and none is left over from a previous version', () => {
    expect(Object.keys(texts).toSorted()).toEqual(english.map(([key]) => key).toSorted())
  })

  test('have the values of the English ones, in each of the plural forms of the language', () => {
    for (const [key, text] of english) {
      const own = texts[key] ?? ''
      const wanted = namesIn(typeof text === 'string' ? text : text.other)
      if (typeof own !== 'string') expect(Object.keys(own).toSorted(), key).toEqual(categories)
      // Only a count selects a plural form. Another language may need several forms of a text where English needs one.
      if (typeof text !== 'string') expect(typeof own, key).toBe('object')
      if (!wanted.includes('{count}')) expect(typeof own, key).toBe('string')
      for (const form of formsOf(own)) expect(namesIn(form), key).toEqual(wanted)
    }
  })

  test('are translated, except words that are the same in several languages', () => {
    const left = english.filter(([key, text]) => {
      const isSame = JSON.stringify(texts[key]) === JSON.stringify(text)
      const words = formsOf(texts[key] ?? '').flatMap(wordsIn)
      return isSame && words.some((word) => !INTERNATIONAL.has(word.toLowerCase()) && !/^\d+$/.test(word))
    })
    expect(left).toEqual([])
  })

  test('are plain text, without markup or surrounding spaces', () => {
    for (const [key, text] of Object.entries(texts)) {
      for (const form of formsOf(text)) {
        expect(form, key).not.toMatch(/[<>&]|^\s|\s$/)
        expect(form, key).not.toBe('')
      }
    }
  })
})
