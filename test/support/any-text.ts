import * as fc from 'fast-check'

const point = fc.integer({ min: 0, max: 0x10_ff_ff })

/**
 * Generates text of any characters except lone surrogates. The unit `binary` of fast-check does so too, but first
 * builds a map of all characters, which takes a second of CPU time in each process.
 */
export const anyText = (
  limits: { readonly minLength?: number; readonly maxLength?: number } = {},
): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.array(point, limits).map((points) => String.fromCodePoint(...points).toWellFormed()) },
    fc.string(limits),
  )
