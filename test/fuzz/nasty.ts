/** Texts that a parser may take long to read: many repetitions, up to the maximum size of an entry point. */
import type { Random } from '../support/random.ts'

/** The tokens of the texts, one group per line. `¦` separates the tokens, which may contain spaces. */
const TOKENS = [
  '<!--¦-->¦<!-- -->¦<!---->¦<?xml ¦?>¦<!DOCTYPE svg ¦<svg¦*?¦*¦?¦%¦%2¦%2F¦%C3',
  '.¦..¦./¦../¦/¦//¦\\¦ ¦\t¦\n¦\r\n¦\n ¦\u00a0¦\ufeff¦\0¦\u001f¦\u007f',
  `[¦]¦{¦}¦(¦)¦[]¦{}¦[]\n¦"¦\\"¦'¦''¦\`¦,¦;¦; ¦:¦: ¦=¦q=0.¦;q=0`,
  '0¦1¦99999999999999999999¦1.¦.0¦-¦--¦- ¦+¦e¦1e¦_¦~¦#¦ #¦&¦&a ¦*a ¦!¦!!¦|¦>',
  'a¦A¦aA¦Error¦at ¦\n    at a:1¦File "¦hub¦homey.¦com.¦$¦$1¦${¦{{¦@¦🔥¦\ud800¦é¦\\u0041',
].flatMap((group) => group.split('¦'))

const PAIRS = [
  ['[', ']'],
  ['{"a":', '}'],
  ['[{"a":', '}]'],
  ['"', '"'],
  ['<!--', '-->'],
  ['(', ')'],
  ['a: [', ']'],
] as const

const ITEMS = [
  (i: number) => `"${i.toString(36)}":{},`,
  (i: number) => `"${i.toString(36)}":{"id":"${i.toString(36)}"},`,
  (i: number) => `"${i}":0,`,
  (i: number) => `"hub-${i}":{"nonce":"n","since":"2026-01-01T00:00:00Z","revision":${i}},`,
  (i: number) => `${i}: ${i}\n`,
  (i: number) => `k${i}: &a${i} [*a${i - 1}, *a${i - 1}]\n`,
  (i: number) => `- ${i}\n`,
  (i: number) => `X-${i}: ${i}\r\n`,
  (i: number) => `${' '.repeat(i % 500)}a:\n`,
  (i: number) => `${i};`,
  () => '{},',
  () => '1,',
  () => '"",',
] as const

/** Returns a random length: mostly short, sometimes up to `max`. */
function length(random: Random, max: number): number {
  const lot = random.next()
  const most = lot < 0.9 ? 200 : lot < 0.98 ? 4000 : lot < 0.998 ? 64_000 : max
  return random.below(Math.min(most, max)) + 1
}

/** Returns a string that is difficult to handle. `max` is its maximum length in UTF-16 code units. */
export function nasty(random: Random, max: number): string {
  const size = length(random, max)
  const repeated = (token: string, of = size) => token.repeat(Math.ceil(of / token.length)).slice(0, of)
  const head = random.pick(['', '', random.pick(TOKENS), random.pick(TOKENS) + random.pick(TOKENS)])
  const tail = random.pick(['', '', 'x', '<svg', random.pick(TOKENS)])
  const [open, close] = random.pick(PAIRS)
  const item = random.pick(ITEMS)
  const body = random.pick([
    () => repeated(random.pick(TOKENS)),
    () => repeated(random.pick(TOKENS) + random.pick(TOKENS)),
    () => repeated(random.pick(TOKENS), size / 2) + repeated(random.pick(TOKENS), size / 2),
    () => Array.from({ length: Math.ceil(Math.min(size, 2000) / 3) }, () => random.pick(TOKENS)).join(''),
    () => open.repeat(size / (open.length + close.length)) + close.repeat(size / (open.length + close.length)),
    () => `${open.repeat(3)}${repeated(random.pick(TOKENS))}${close.repeat(3)}`,
    () => items(item, size),
    () => `{${items(item, size).slice(0, -1)}}`,
    () => `[${items(item, size).slice(0, -1)}]`,
  ])()
  return (head + body + tail).slice(0, max)
}

function items(item: (i: number) => string, size: number): string {
  const found: string[] = []
  for (let [i, left] = [0, size]; left > 0; i += 1) {
    const one = item(i)
    found.push(one)
    left -= one.length
  }
  return found.join('')
}

/** Returns JSON texts that take long to parse, of the maximum size of an entry point. */
export const largest = (max: number): string[] => [
  '['.repeat(max / 2) + ']'.repeat(max / 2),
  `{${items((i) => `"${i.toString(36)}":{"id":"${i.toString(36)}"},`, max - 100).slice(0, -1)}}`,
  `{${items((i) => `"${i.toString(36)}":{},`, max - 100).slice(0, -1)}}`,
  JSON.stringify('"'.repeat(max / 2 - 10)),
]

/** Returns the text of `nasty` as a JSON value: unchanged if it is valid JSON, otherwise as a string. */
export function nastyJson(random: Random, max: number): string {
  const text = nasty(random, max)
  try {
    JSON.parse(text)
    return text
  } catch {
    return JSON.stringify(text).slice(0, max)
  }
}
