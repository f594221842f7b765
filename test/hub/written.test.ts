import { describe, expect, test } from 'vitest'
import { sameJson } from '../../src/base/json.ts'
import type { Answer } from '../../src/hub/answer.ts'
import { readEndpoint } from '../../src/hub/endpoints.ts'
import { agrees, checkResponse, effectOf, effectOfEndpoint, isErrorBody } from '../../src/hub/written.ts'

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

  test('matches if each key that it contains has the requested value', () => {
    const wanted = { enabled: true, channel: 'beta' }
    expect(agrees({}, wanted)).toBe(true)
    expect(agrees({ enabled: null }, wanted)).toBe(true)
    expect(agrees({ enabled: true, channel: 'beta', name: 'any', version: '1.0.0' }, wanted)).toBe(true)
    expect(agrees({ enabled: true, channel: 'stable' }, wanted)).toBe(false)
    expect(agrees({ enabled: false, channel: 'beta' }, wanted)).toBe(false)
  })

  test('is passed on if it has its own content', () => {
    const said = (body: string) => {
      const answer: Answer = { status: 200, headers: {}, body: Buffer.from(body) }
      const refused = () => {
        throw new Error('no refusal')
      }
      return checkResponse(answer, effectOf('getAppStd', { id: 'com.a' }, { message: '' }), true, refused)
    }
    expect(['{"id":"log-1"}', '"log-1"', 'log-1', '\ufefflog-1', '0', '', 'null'].map(said)).toEqual([
      ...[{ id: 'log-1' }, 'log-1', 'log-1', 'log-1', 0, null, null],
    ])
  })

  test('is a value if it is the same when written as JSON', () => {
    expect(sameJson({ a: [1, -0], b: null }, { b: null, a: [1, 0] })).toBe(true)
    expect([sameJson([1, 2], [2, 1]), sameJson(1, '1'), sameJson({}, null)]).toEqual([false, false, false])
  })
})

describe('the request of a write', () => {
  test('names an app in the body of an install', () => {
    const store = readEndpoint({
      section: 'manager',
      item: 'apps',
      method: 'POST',
      path: '/store',
      body: { id: 'com.a' },
    })
    expect([effectOfEndpoint(store).id, effectOf('installFromAppStore', { appId: 'com.a' }, {}).id]).toEqual([
      'com.a',
      'com.a',
    ])
  })
})
