import { describe, expect, test } from 'vitest'
import type { Answer } from '../../src/hub/answer.ts'
import type { HubError } from '../../src/hub/errors.ts'
import { OPERATIONS, type OperationName } from '../../src/hub/operations.ts'
import { lacksLicence, refusal } from '../../src/hub/refusal.ts'

const APP = 'the.app'
const NOW = Date.parse('2026-01-01T00:00:00Z')

function answer(status: number, body: unknown = '', headers: Answer['headers'] = {}): Answer {
  return { status, headers, body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)) }
}

function refused(name: OperationName, parameters: object, said: Answer): HubError {
  return refusal({ name, operation: OPERATIONS[name], parameters }, said, {
    hasApp: (id) => id === APP,
    signs: false,
    now: NOW,
  })
}

describe('a hub that refuses', () => {
  test.each([
    [401, '', { code: 'unauthorized', status: 401, message: 'The hub does not accept the API key.' }],
    [
      403,
      '',
      { code: 'forbidden', status: 403, scope: 'hub.app', message: 'The hub reports that the API key lacks hub.app.' },
    ],
    [400, '', { code: 'rejected', status: 400, message: 'The hub refused: 400.' }],
    [499, { error: 'no' }, { code: 'rejected', status: 499, message: 'The hub refused: 499, no.' }],
    [500, '', { code: 'failed', status: 500, message: 'The hub failed: 500.' }],
    [
      503,
      { error: 'x', error_description: 'in a moment' },
      { code: 'failed', message: 'The hub failed: 503, in a moment.' },
    ],
    [
      500,
      { error: 'missing_api_method' },
      { code: 'unsupported', status: 500, message: 'This hub has no restartApp.' },
    ],
    [502, { error: 'missing_api_method' }, { code: 'failed', status: 502 }],
    [302, '', { code: 'nonsense', status: 302, message: 'The hub answered with the unexpected status 302.' }],
    [399, '', { code: 'nonsense', status: 399 }],
  ])('with %i %j is reported as the right error', (status, body, expected) => {
    expect(refused('restartApp', { id: APP }, answer(status, body))).toMatchObject(expected)
  })

  test.each(['Subscription inactive', 'invalid serial number'])(
    'because of its licence (%s) does not blame the key',
    (error) => {
      expect(refused('restartApp', { id: APP }, answer(403, { error }))).toMatchObject({
        code: 'subscription',
        status: 403,
        message: `The hub has no valid licence, ${error}.`,
      })
      const described = answer(403, { error, error_description: 'Lidmaatschap verlopen' })
      expect(refused('restartApp', { id: APP }, described).code).toBe('subscription')
      expect(lacksLicence(error)).toBe(true)
      expect(refused('restartApp', { id: APP }, answer(400, { error })).code).toBe('rejected')
      expect(lacksLicence('Missing Scopes')).toBe(false)
    },
  )

  test('an operation without a permission does not blame a missing one', () => {
    const error = refused('ping', {}, answer(403, { error: 'not you' }))
    expect(error).toMatchObject({ code: 'forbidden', message: 'The hub forbids ping, not you.' })
    expect(error.scope).toBeUndefined()
  })

  test('is quoted in part, on one line, and only if it gives a text', () => {
    const message = (body: unknown) => refused('restartApp', { id: APP }, answer(500, body)).message
    expect(message({ error: 'a\r\n\u001b[31mb\u0085c' })).toBe('The hub failed: 500, a [31mb c.')
    expect(message({ error: 'x'.repeat(1000) })).toBe(`The hub failed: 500, ${'x'.repeat(200)}.`)
    for (const none of ['{', '[]', 'null', '"text"', '{"error":{"a":1}}', '{"error":""}', '<html>'])
      expect(message(none)).toBe('The hub failed: 500.')
  })
})

describe('a 404', () => {
  const html = answer(404, '<html>', { 'content-type': 'text/html' })

  test.each([
    ['restartApp', { id: APP }, 'unknown_app', 'The hub knows no such app.'],
    ['getApp', { id: 'gone' }, 'unknown_app', 'The hub knows no such app.'],
    ['getAppSetting', { id: APP, name: 'x' }, 'unknown_setting', 'The app has no such setting.'],
    ['getAppSetting', { id: 'gone', name: 'x' }, 'unknown_app', 'The hub knows no such app.'],
    ['garbageCollectApp', { id: APP }, 'unsupported', 'This hub has no garbageCollectApp.'],
    ['garbageCollectApp', { id: 'gone' }, 'unknown_app', 'The hub knows no such app.'],
    ['speak', { text: 'Hello' }, 'unsupported', 'This hub has no speak.'],
    ['installFromAppStore', { appId: 'new' }, 'unknown_app', 'The hub knows no such app.'],
  ] as const)('to %s %j means %s', (name, parameters, code, message) => {
    expect(refused(name, parameters, answer(404))).toMatchObject({ code, message, status: 404, foreign: false })
  })

  test.each([
    ['restartApp', { id: APP }],
    ['getApp', { id: 'gone' }],
    ['installFromAppStore', { appId: 'new' }],
  ] as const)('of a gateway is no evidence about the app: %s %j', (name, parameters) => {
    expect(refused(name, parameters, html)).toMatchObject({
      code: 'failed',
      status: 404,
      foreign: true,
      message: 'Another server answered in place of the hub: 404.',
    })
  })

  test('of a gateway to an operation without an app means a missing operation', () => {
    expect(refused('speak', { text: 'x' }, html)).toMatchObject({ code: 'unsupported', foreign: true })
  })
})

describe('a hub that asks for fewer requests', () => {
  const waits = (value?: string) =>
    refused('getApps', {}, answer(429, '', value === undefined ? {} : { 'retry-after': value })).retryAfterMs

  test('gives the time, in seconds or as a date', () => {
    expect(refused('getApps', {}, answer(429))).toMatchObject({
      code: 'rate_limited',
      status: 429,
      message: 'The hub asks for fewer requests.',
    })
    expect([waits('7'), waits('120'), waits('Thu, 01 Jan 2026 00:00:09 GMT')]).toEqual([7000, 120_000, 9000])
  })

  test('gives a date by its own clock, which may be wrong', () => {
    const wait = (date: string) => {
      const headers = { 'retry-after': 'Wed, 01 Jan 2031 00:00:09 GMT', date }
      return refused('getApps', {}, answer(429, '', headers)).retryAfterMs
    }
    expect(wait('Wed, 01 Jan 2031 00:00:00 GMT')).toBe(9000)
    expect(wait('today')).toBe(300_000)
  })

  test('is tried again after a second at the earliest, and after five minutes at the latest', () => {
    expect([waits('0'), waits('301'), waits('300')]).toEqual([1000, 300_000, 300_000])
    expect([waits('Wed, 31 Dec 2025 23:59:59 GMT'), waits('Fri, 02 Jan 2026 00:00:00 GMT')]).toEqual([1000, 300_000])
  })

  test('may give no valid time', () => {
    expect(['', 'soon', '7s', 's7', undefined].map(waits)).toEqual(Array(5).fill(undefined))
  })
})
