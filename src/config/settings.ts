/** Schemas for values with fixed keys, which are published settings and the rules of the generic call. */
import * as v from 'valibot'
import { didYouMean } from '../base/nearest.ts'
import { METHODS, SECTIONS } from '../contract/calls.ts'
import { fixedKeys } from './schemas.ts'

const EXPECTED =
  'expected switch, text, password, {type: number, min: 0, max: 100} or {type: select, options: [low, high]}, each with an optional name'

/** Excludes names that cannot be part of a hub's path, because URL parsing resolves them. */
export const settingName = v.pipe(
  v.string(),
  v.notValues(['', '.', '..'], 'expected the name of a setting, which cannot be empty, "." or ".."'),
)

/** An object with fixed keys. `sample` is an example of a value, for messages. */
function kind<const E extends v.ObjectEntries>(entries: E, sample: string) {
  const keys = Object.keys(entries)
  const object = v.strictObject(entries, ({ input, expected }) => {
    if (expected !== 'never') return `missing; expected a value such as ${sample}`
    return `there is no such key${didYouMean(String(input), keys) || `; there are ${keys.join(', ')}`}`
  })
  return v.pipe(object, v.readonly())
}

const number = v.pipe(v.number('expected a number'), v.finite('expected a finite number'))
const name = v.exactOptional(v.string('expected a name in quotes'))
const OPTIONS = 'expected a list of texts such as [low, high]'

const PLAIN = ['switch', 'text', 'password'] as const

const longForm = v.pipe(
  fixedKeys,
  v.variant(
    'type',
    [
      kind({ type: v.picklist(PLAIN), name }, '{type: switch}'),
      v.pipe(
        kind(
          {
            type: v.literal('number'),
            name,
            min: number,
            max: number,
            step: v.exactOptional(v.pipe(number, v.gtValue(0, 'expected a number above 0'))),
          },
          '{type: number, min: 0, max: 100}',
        ),
        v.check(({ min, max }) => min < max, 'expected a min below max, such as {type: number, min: 0, max: 100}'),
      ),
      kind(
        {
          type: v.literal('select'),
          name,
          options: v.pipe(v.array(v.string(OPTIONS), OPTIONS), v.nonEmpty(OPTIONS), v.readonly()),
        },
        '{type: select, options: [low, high]}',
      ),
    ],
    EXPECTED,
  ),
)

const shortForm = v.pipe(
  v.picklist(PLAIN),
  v.transform((type): { readonly type: typeof type; readonly name?: string } => ({ type })),
)

export const publishedSetting = v.pipe(v.union([shortForm, longForm], EXPECTED), v.metadata({ name: 'setting' }))

export type PublishedSetting = v.InferOutput<typeof publishedSetting>

const CALL_RULE = 'expected a rule such as {"item": "notifications", "methods": ["GET"]}'
const METHOD = `expected a list of ${METHODS.join(', ')}`

const row = v.strictObject(
  {
    section: v.exactOptional(v.picklist(SECTIONS, `expected ${SECTIONS.join(' or ')}`)),
    item: v.pipe(v.string(CALL_RULE), v.regex(/^[^\p{Cc}\p{Cs}]{1,256}$/u, CALL_RULE)),
    methods: v.pipe(v.array(v.picklist(METHODS, METHOD), METHOD), v.nonEmpty(METHOD), v.readonly()),
  },
  CALL_RULE,
)

export const callRule = v.pipe(fixedKeys, row, v.readonly(), v.metadata({ name: 'call rule' }))
