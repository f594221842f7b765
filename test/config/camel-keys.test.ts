import { expect, expectTypeOf, it } from 'vitest'
import { hubOptions } from '../../src/config/options.ts'
import { camelKeys } from '../../src/config/table.ts'

const slice: {
  readonly url: string
  readonly poll_interval_fallback: number
  readonly api_key: string | null
  readonly embedded: { readonly ws_port: number }
} = { url: 'http://h', poll_interval_fallback: 5, api_key: null, embedded: { ws_port: 0 } }

it('names options in camel case, and leaves objects in their values unchanged', () => {
  const options = camelKeys(slice)
  expect(options).toStrictEqual({
    url: 'http://h',
    pollIntervalFallback: 5,
    apiKey: undefined,
    embedded: { ws_port: 0 },
  })
  expectTypeOf(options).toEqualTypeOf<{
    readonly url: string
    readonly pollIntervalFallback: number
    readonly apiKey: string | undefined
    readonly embedded: { readonly ws_port: number }
  }>()
})

it('keeps values that are false, zero or empty', () => {
  expect(camelKeys({ read_only: false, ws_port: 0, base_topic: '' })).toEqual({
    readOnly: false,
    wsPort: 0,
    baseTopic: '',
  })
})

it('keeps the options of each hub separate', () => {
  expect(new Set(Object.keys(camelKeys(hubOptions))).size).toBe(Object.keys(hubOptions).length)
})
