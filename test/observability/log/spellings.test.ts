import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodePatch } from '../../../src/hub/decode.ts'
import { Scrubber } from '../../../src/observability/scrub.ts'
import { Random } from '../../support/random.ts'
import { runs } from '../../support/runs.ts'

const SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '/': '\\/',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
}

const unicode = (char: string) =>
  Array.from({ length: char.length }, (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')
const percent = (char: string) => [...Buffer.from(char)].map((b) => `%${b.toString(16).padStart(2, '0')}`).join('')

const spellingsOf = (char: string): string[] => [
  char,
  unicode(char),
  unicode(char).toUpperCase().replaceAll('\\U', '\\u'),
  percent(char),
  percent(char).toUpperCase(),
  SHORT[char] ?? char,
  JSON.stringify(unicode(char)).slice(1, -1),
  encodeURIComponent(percent(char)),
  encodeURIComponent(SHORT[char] ?? char),
]

const character = fc.oneof(
  fc.constantFrom(...'abcXYZ0129-_+/=.:'),
  fc.constantFrom(...'"\\/%\n\t &ü漢'),
  fc.constant('\u{1F600}'),
)
const secret = fc.array(character, { minLength: 8, maxLength: 40 })
const picks = fc.array(fc.nat(8), { minLength: 40, maxLength: 40 })
const around = fc.oneof(fc.string(), fc.constantFrom('\\', '%', '%4', '%2', '\\u00', '"', '\\\\', 'u002b'))
const spelled = (chars: readonly string[], by: readonly number[]) =>
  chars.map((char, i) => spellingsOf(char)[by[i] ?? 0]).join('')

test('any spelling of a secret is masked in any text, in a payload and in a line of the log', () => {
  fc.assert(
    fc.property(secret, picks, around, around, (chars, by, before, after) => {
      const scrubber = new Scrubber([chars.join(''), 'another-secret'])
      const text = before + spelled(chars, by) + after
      for (const clean of [scrubber.text(text), scrubber.payload(text)]) {
        expect(clean).toContain('***')
        expect(clean).not.toContain(spelled(chars, by))
      }
      for (const json of [scrubber.payload(JSON.stringify({ text })), scrubber.line(JSON.stringify({ msg: text }))]) {
        expect(JSON.stringify(JSON.parse(json))).toContain('***')
      }
    }),
    { numRuns: runs(300), seed: 20261124 },
  )
})

test('a text is masked before it is cut, so that no part of a secret stays, in any spelling', () => {
  const key = 'a1b2-c3d4+e5f6/0789'
  const scrubber = new Scrubber([key])
  fc.assert(
    fc.property(picks, fc.integer({ min: 900, max: 1024 }), (by, at) => {
      const crashedMessage = 'x'.repeat(at) + spelled([...key], by)
      const { crash_message } = decodePatch({ crashedMessage }, (text) => scrubber.text(text))
      expect(crash_message).toMatch(/^x+\*{0,3}$/)
    }),
    { numRuns: 300, seed: 20261124 },
  )
})

test('a text without the secret is unchanged, whatever is encoded in it', () => {
  const scrubber = new Scrubber(['a1b2-c3d4+e5f6/0789'])
  fc.assert(
    fc.property(fc.array(fc.constantFrom('\\', '%', 'u00', '2b', '\\/', 'a', '1', '-', '%25', '\\n')), (parts) => {
      expect(scrubber.text(parts.join(''))).toBe(parts.join(''))
    }),
    { seed: 20261124 },
  )
})

test('the time to mask a text grows at most in proportion to its length', () => {
  const scrubber = new Scrubber(['\\\\\\\\aaaa', '%25%25%25', 'a1b2-c3d4+e5f6/0789'])
  for (const one of ['\\', '%25', '%', '25', '\\u005c', '%5c', '%C3%25', '\\u00']) {
    const began = process.cpuUsage()
    scrubber.payload(one.repeat((16 * 1024) / one.length))
    expect(process.cpuUsage(began).user / 1000, one).toBeLessThan(2_000)
  }
})

test('secrets that overlap themselves or others are masked as by a search at each position', () => {
  const random = new Random(20261124)
  const letters = (length: number) => Array.from({ length }, () => 'ab'[random.int(0, 1)]).join('')
  for (let round = 0; round < 700; round += 1) {
    const period = letters(random.int(1, 5))
    const periodic = () => period.repeat(20).slice(0, random.int(20, 60)) + letters(random.int(0, 1))
    // Short secrets are often part of the text of longer ones.
    const short = Array.from({ length: random.int(0, 8) }, () => letters(random.int(4, 14)))
    const secrets = [periodic(), periodic(), ...(round % 2 === 0 ? [] : short)]
    const text = Array.from({ length: random.int(0, 6) }, () => periodic() + letters(random.int(0, 3))).join('')
    const hidden = new Set<number>()
    for (const secret of secrets) {
      for (let at = text.indexOf(secret); at >= 0; at = text.indexOf(secret, at + 1)) {
        for (let i = at; i < at + secret.length; i += 1) hidden.add(i)
      }
    }
    const marked = [...text].map((char, i) => (hidden.has(i) ? '*' : char)).join('')
    const scrubber = new Scrubber(secrets)
    // Adjacent secrets must become two masks, and overlapping secrets one mask.
    expect(scrubber.text(text).replaceAll(/\*+/g, '*'), `${secrets} in ${text}`).toBe(marked.replaceAll(/\*+/g, '*'))
    expect(scrubber.text(encodeURIComponent(`%${text}`)).includes('***')).toBe(hidden.size > 0)
  }
})

test('a secret is masked at the beginning, in the middle, at the end, and as the whole of a text', () => {
  const long = 'x'.repeat(50) + 'y'.repeat(50)
  const scrubber = new Scrubber(['secret', long, 'aé漢\u{1F600}'])
  for (const one of ['secret', long, 'aé漢\u{1F600}']) {
    for (const text of [one, `${one} behind`, `before ${one}`, `before ${one} behind`]) {
      expect(scrubber.text(text)).toBe(text.replace(one, '***'))
    }
    for (const part of [one.slice(1), one.slice(0, -1)]) expect(scrubber.text(part)).toBe(part)
  }
})

const LENGTH = 256 * 1024
/** Only keys with repetitions make the search slow, and few keys are longer than 64 characters. */
test.each([
  ['of one letter', 'a'.repeat(64), 'a'.repeat(LENGTH), '***'],
  ['of one letter but the last', `${'a'.repeat(63)}b`, `${'a'.repeat(LENGTH)}b`, `${'a'.repeat(LENGTH - 63)}***`],
  ['of one letter but the first', `b${'a'.repeat(63)}`, `${'a'.repeat(LENGTH)}b`, `${'a'.repeat(LENGTH)}b`],
  ['of one letter, some encoded', 'a'.repeat(64), `${'a'.repeat(253)}%61`.repeat(LENGTH / 256), '***'],
  [
    'with a text all encoded behind it',
    'secret-a',
    `secret-a${'%61'.repeat(LENGTH / 4)}`,
    `***${'%61'.repeat(LENGTH / 4)}`,
  ],
])('a hostile text of 256 KiB is masked quickly for a secret %s', (_, secret, text, masked) => {
  expect(new Scrubber([secret]).text(text) === masked).toBe(true)
})
