import { expect, test } from 'vitest'
import { Needles } from '../../../src/observability/scrub.ts'
import { Random } from '../../support/random.ts'

const ALPHABETS = ['ab', 'abcdef', 'aé漢\u{1F600}']

test('the search finds the same as one for each text, in texts of few letters', () => {
  const random = new Random(20261122)
  // With few letters, near matches are frequent.
  const text = (letters: string, least: number, most: number) =>
    Array.from({ length: random.int(least, most) }, () => letters[random.int(0, letters.length - 1)]).join('')
  let found = 0
  for (let round = 0; round < 3_000; round += 1) {
    const letters = ALPHABETS[round % ALPHABETS.length] ?? ''
    const sought = Array.from({ length: random.int(1, 12) }, () => text(letters, 4, 14))
    const searched = text(letters, 0, 40)
    const expected = sought.some((one) => searched.includes(one))
    if (expected) found += 1
    expect(new Needles(sought).areIn(searched), `${JSON.stringify(sought)} in ${searched}`).toBe(expected)
  }
  expect(found).toBeGreaterThan(300)
  expect(found).toBeLessThan(2_700)
})

test('the search finds a text at the beginning, in the middle, at the end, and as the whole', () => {
  const long = 'x'.repeat(50) + 'y'.repeat(50)
  const needles = new Needles(['secret', long])
  for (const one of ['secret', long]) {
    for (const text of [one, `${one} behind`, `before ${one}`, `before ${one} behind`]) {
      expect(needles.areIn(text)).toBe(true)
    }
    expect(needles.areIn(one.slice(1))).toBe(false)
    expect(needles.areIn(one.slice(0, -1))).toBe(false)
  }
  expect(new Needles([]).areIn('anything')).toBe(false)
})
