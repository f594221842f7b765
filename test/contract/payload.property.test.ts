import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { COMMANDS } from '../../src/contract/commands.ts'
import { CommandError } from '../../src/contract/errors.ts'
import { anyValue, decodeText, object, type PayloadKind, peekTransaction } from '../../src/contract/payload.ts'
import { anyText } from '../support/any-text.ts'
import { runs } from '../support/runs.ts'

function readAll(kind: PayloadKind<unknown>, bytes: Uint8Array): unknown {
  const reading = kind.read(decodeText(bytes))
  expect(reading.expiresAt).not.toBeNaN()
  return reading.input()
}

const bytesOf = (text: string) => new TextEncoder().encode(text)
const envelope = fc.record(
  {
    transaction: fc.oneof(
      fc.string({ maxLength: 256 }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.integer(),
    ),
    expires_at: fc.oneof(
      fc.integer(),
      fc
        .date({ noInvalidDate: true, min: new Date('0001-01-01'), max: new Date('9999-01-01') })
        .map((at) => at.toJSON()),
    ),
  },
  { requiredKeys: [] },
)
const kinds = fc.constantFrom(...COMMANDS.map(({ payload }) => payload))
/** Inputs that range from random bytes to almost valid payloads. */
const anyBytes = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  anyText({ maxLength: 300 }).map(bytesOf),
  fc.json({ maxDepth: 5 }).map(bytesOf),
  fc
    .record(
      { message: fc.jsonValue(), name: fc.jsonValue(), autoupdate: fc.jsonValue(), filter: fc.jsonValue() },
      { requiredKeys: [] },
    )
    .chain((own) =>
      fc
        .record({ transaction: fc.jsonValue(), expires_at: fc.jsonValue() }, { requiredKeys: [] })
        .map((more) => ({ ...own, ...more })),
    )
    .map((value) => bytesOf(JSON.stringify(value))),
  fc.tuple(fc.json(), fc.nat(50)).map(([text, cut]) => bytesOf(text.slice(0, -cut))),
)

describe('the bytes of a command', () => {
  test('become an input or one refusal, whatever they are', () => {
    fc.assert(
      fc.property(kinds, anyBytes, (kind, bytes) => {
        try {
          readAll(kind, bytes)
        } catch (error) {
          if (!(error instanceof CommandError)) throw error
          expect(error.code).toBe('invalid_payload')
          expect(error.message).toMatch(/^.{1,200}$/)
        }
        const transaction = peekTransaction(bytes)
        expect(transaction === null || ['string', 'number'].includes(typeof transaction)).toBe(true)
      }),
      { numRuns: runs(1000) },
    )
  })
})

describe('an input', () => {
  test('arrives unchanged, without its envelope', () => {
    const update = COMMANDS.find(({ name }) => name === 'update')?.payload ?? object({})
    const own = fc
      .record({ autoupdate: fc.boolean(), channel: fc.string({ minLength: 1, maxLength: 64 }) }, { requiredKeys: [] })
      .filter((value) => Object.keys(value).length > 0)
    fc.assert(
      fc.property(own, envelope, (value, extra) => {
        const reading = update.read(JSON.stringify({ ...extra, ...value }))
        expect(reading.input()).toEqual(value)
        const { transaction = null, expires_at: at = null } = extra
        // `JSON.stringify` writes a negative zero as 0.
        expect(reading.transaction).toBe(transaction === 0 ? 0 : transaction)
        expect(reading.expiresAt).toBe(typeof at === 'string' ? Date.parse(at) : at)
      }),
    )
  })

  test('for a setting arrives as a JSON value if it is JSON, otherwise as text', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => {
        const text = JSON.stringify(value)
        expect(anyValue.read(text).input()).toEqual(JSON.parse(text))
      }),
    )
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(anyValue.read(`x${text}`).input()).toBe(`x${text}`)
      }),
    )
  })
})
