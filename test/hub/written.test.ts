import { describe, expect, test } from 'vitest'
import { sameJson } from '../../src/base/json.ts'
import { agrees, decodeDoneTo, expectApp, isErrorBody } from '../../src/hub/written.ts'

describe('the answer to a write', () => {
  test.each([
    [{ error: 'starting up' }, true],
    [{ error: { a: 1 } }, true],
    [{ error: 'x', error_description: 'y', stack: 'z', code: 1, statusCode: 500 }, true],
    [{ error: 'x', enabled: true }, false],
    [{ error: undefined }, false],
    [{ code: 1 }, false],
    [{}, false],
    [[{ error: 'x' }], false],
    ['error', false],
    [null, false],
  ])('%j is the body of a refusal: %s', (value, is) => {
    expect(isErrorBody(value)).toBe(is)
  })

  test('agrees where each key of which it speaks has the value wanted', () => {
    const wanted = { enabled: true, channel: 'beta', name: undefined }
    expect(agrees({}, wanted)).toBe(true)
    expect(agrees({ enabled: true, channel: 'beta', name: 'any', version: '1.0.0' }, wanted)).toBe(true)
    expect(agrees({ enabled: true, channel: 'stable' }, wanted)).toBe(false)
    expect(agrees({ enabled: false, channel: 'beta' }, wanted)).toBe(false)
    expect(() => expectApp(null, wanted)).not.toThrow()
    expect(() => expectApp({ enabled: true, channel: 'stable' }, wanted)).toThrow('not with what was asked for')
    expect(() => decodeDoneTo('ok', { id: 'a' })).toThrow('not with what was asked for')
  })

  test('is a value when it is the same once written as JSON', () => {
    expect(sameJson({ a: [1, -0], b: null }, { b: null, a: [1, 0] })).toBe(true)
    expect([sameJson([1, 2], [2, 1]), sameJson(1, '1'), sameJson({}, null)]).toEqual([false, false, false])
  })
})
