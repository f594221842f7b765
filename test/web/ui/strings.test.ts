import { afterEach, describe, expect, test } from 'vitest'
import { defineStrings, language, textFor } from '../../../src/web/ui/app/terms.ts'
import { english, fieldOf, files, type Node, namesIn, nodesOf, parts } from '../../support/page-texts.ts'

afterEach(() => {
  language.value = { code: 'en', texts: {} }
})

function shownIn(node: Node): string {
  const isText = node['type'] === 'JSXText'
  const isLabel =
    node['type'] === 'JSXAttribute' &&
    ['aria-label', 'label', 'title', 'hint', 'alt'].includes(String(fieldOf(node['name'], 'name')))
  const shown = isText ? node['value'] : isLabel ? fieldOf(node['value'], 'value') : ''
  return String(shown ?? '').trim()
}

describe('the texts of the page', () => {
  test('are plain data that can be read without running the page, and no key is defined twice', () => {
    expect(english.length).toBeGreaterThan(250)
    expect(parts).toEqual([...new Set(parts)])
    expect(english.map(([key]) => key)).toEqual([...new Set(english.map(([key]) => key))])
    for (const [key, text] of english) expect(text, key).not.toBe('')
  })

  test('name the same values in all plural forms', () => {
    for (const [key, text] of english) {
      if (typeof text === 'string') continue
      for (const form of Object.values(text)) expect(namesIn(form ?? ''), key).toEqual(namesIn(text.other))
    }
  })

  test('are in the tables only: no view has a text of its own', () => {
    const own = files.flatMap((file) => [...nodesOf(file)].map((node) => `${file}: ${shownIn(node)}`))
    expect(own.filter((text) => /: .*[a-z]/i.test(text))).toEqual([])
  })
})

describe('defineStrings', () => {
  const text = defineStrings('fruit', {
    title: 'Fruit',
    of: 'Fruit of {name}',
    count: { one: '{count} apple', other: '{count} apples' },
    kinds: { pear: 'Pear' },
  })

  test('fills in values, and chooses the plural form by the count', () => {
    expect([text.title, text.kinds.pear, text.of({ name: 'Eve' })]).toEqual(['Fruit', 'Pear', 'Fruit of Eve'])
    expect([text.count({ count: 1 }), text.count({ count: 2 }), text.count({ count: 0 })]).toEqual([
      '1 apple',
      '2 apples',
      '0 apples',
    ])
  })

  test('inserts values unchanged, even those that look like a placeholder', () => {
    expect(text.of({ name: '{name} $& $1' })).toBe('Fruit of {name} $& $1')
  })

  test('shows the chosen language with its plural forms, and English if a text is missing', () => {
    language.value = {
      code: 'pl',
      texts: {
        'fruit.kinds.pear': 'Gruszka',
        'fruit.of': 'Owoce: {name}',
        'fruit.count': { one: '{count} jabłko', few: '{count} jabłka', other: '{count} jabłek' },
      },
    }
    expect([text.title, text.kinds.pear, text.of({ name: 'Ewa' })]).toEqual(['Fruit', 'Gruszka', 'Owoce: Ewa'])
    expect([1, 3, 5].map((count) => text.count({ count }))).toEqual(['1 jabłko', '3 jabłka', '5 jabłek'])
  })

  test('accepts no call without the values of the text, or with other values', () => {
    // @ts-expect-error the name is missing
    expect(text.of({})).toBe('Fruit of ')
    // @ts-expect-error there is no such value
    expect(text.of({ nam: 'Eve' })).toBe('Fruit of ')
    // @ts-expect-error plural forms need the count
    expect(text.count({})).toBe(' apples')
  })
})

test('textFor shows a code without a text unchanged', () => {
  expect(textFor({ off: 'Off' }, 'off')).toBe('Off')
  expect(textFor({ off: 'Off' }, 'constructor')).toBe('constructor')
})
