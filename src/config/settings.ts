/** The format of a published setting: what kind of value it holds, so that it can be shown and changed. */
import { accept, type Format, refuse } from './format.ts'

/** A setting that is published, with what Home Assistant needs to offer it. */
export type PublishedSetting =
  | { readonly type: 'switch' | 'text'; readonly name?: string }
  | {
      readonly type: 'number'
      readonly name?: string
      readonly min: number
      readonly max: number
      readonly step?: number
    }
  | { readonly type: 'select'; readonly name?: string; readonly options: readonly string[] }

const expected =
  'switch or text, or {type: number, min, max, step?} or {type: select, options: […]}, each with a name if you like'

const KEYS: Readonly<Record<string, readonly string[]>> = {
  switch: [],
  text: [],
  number: ['min', 'max', 'step'],
  select: ['options'],
}

export const publishedSetting: Format<PublishedSetting> = {
  name: 'setting',
  expected,
  quotable: false,
  schema: {
    anyOf: [
      { enum: ['switch', 'text'] },
      {
        type: 'object',
        additionalProperties: false,
        required: ['type'],
        properties: {
          type: { enum: Object.keys(KEYS) },
          name: { type: 'string' },
          min: { type: 'number' },
          max: { type: 'number' },
          step: { type: 'number', exclusiveMinimum: 0 },
          options: { type: 'array', items: { type: 'string' }, minItems: 1 },
        },
      },
    ],
  },
  parse(raw) {
    const given = raw instanceof Map ? raw : new Map([['type', raw]])
    const setting = read(given)
    return setting === undefined ? refuse(expected) : accept(setting)
  },
  fromText: (text) => text,
  show: (setting) => new Map(Object.entries(setting)),
}

function read(given: ReadonlyMap<unknown, unknown>): PublishedSetting | undefined {
  const { type, name, ...rest } = Object.fromEntries(given)
  const keys = typeof type === 'string' && Object.hasOwn(KEYS, type) ? KEYS[type] : undefined
  if (keys === undefined || (name !== undefined && typeof name !== 'string')) return undefined
  if (Object.keys(rest).some((key) => !keys.includes(key))) return undefined
  const setting = readKind(type, rest)
  return setting === undefined || name === undefined ? setting : { ...setting, name }
}

function readKind(
  type: unknown,
  { min, max, step, options }: Readonly<Record<string, unknown>>,
): PublishedSetting | undefined {
  if (type === 'switch' || type === 'text') return { type }
  if (type === 'select') {
    const words = Array.isArray(options) && options.every((option) => typeof option === 'string') ? options : []
    return words.length === 0 ? undefined : { type, options: words }
  }
  if (typeof min !== 'number' || typeof max !== 'number' || min >= max) return undefined
  if (step === undefined) return { type: 'number', min, max }
  return typeof step === 'number' && step > 0 ? { type: 'number', min, max, step } : undefined
}
