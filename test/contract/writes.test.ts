/** Tests the result of writes whose answers are lost or invalid. The bridge can check the state of the emulated hub. */
import { describe, expect } from 'vitest'
import { isUndecided, tried, undecided } from '../../src/contract/writes.ts'
import type { OperationName } from '../../src/emulator/core/table.ts'
import { HubError } from '../../src/hub/errors.ts'
import { APP, aim, carryOut, failure, operations, test } from './aim.ts'

/** For each write: the command, the payload, the operation, and the operation that checks the effect. */
const WRITES: readonly (readonly [string, string, OperationName, OperationName])[] = [
  ['app enable', '', 'enableApp', 'getApp'],
  ['app disable', '', 'disableApp', 'getApp'],
  ['app autoupdate', 'OFF', 'updateApp', 'getApp'],
  ['app set-setting/x', '[7]', 'setAppSetting', 'getAppSettings'],
  ['app unset-setting/x', '', 'unsetAppSetting', 'getAppSettings'],
  ['app uninstall', JSON.stringify({ confirm: APP }), 'uninstallApp', 'getApps'],
]
const LOOKED = 'A look at the hub finds it not done so far.'
const UNKNOWN = { code: 'outcome_unknown' }
const NOT_DONE = { ...UNKNOWN, message: expect.stringContaining(LOOKED) }
const NOTHING_FOUND = { ...UNKNOWN, message: expect.not.stringContaining(LOOKED) }

describe.each(WRITES)('%s %s', (words, payload, operation, look) => {
  const ready = async () => {
    const aimed = await aim()
    // Disable the app first: if it was already enabled, its state would prove nothing.
    if (words === 'app enable') aimed.emulated.disable(APP)
    aimed.emulated.forgetRequests()
    return aimed
  }

  test('is ok without an answer if a check shows the effect', async () => {
    const aimed = await ready()
    aimed.emulated.behave('execute-then-reset', { operation })
    expect(await carryOut(aimed, words, payload)).toBeNull()
    expect(aimed.emulated.requests).toContainEqual(expect.objectContaining({ operation: look }))
  })

  test('is unknown without an answer if a check does not show the effect, and the message has the finding', async () => {
    const aimed = await ready()
    aimed.emulated.behave('reset-before-executing', { operation })
    const error = await failure(carryOut(aimed, words, payload))
    expect(error).toMatchObject({ code: 'outcome_unknown', message: expect.stringMatching(`.{10} ${LOOKED}$`) })
    expect(error).toHaveProperty('cause', expect.objectContaining({ code: 'no_answer' }))
  })

  test('is unknown without an answer if the check fails, and the message claims nothing', async () => {
    const aimed = await ready()
    aimed.emulated.behave('execute-then-reset', { operation })
    aimed.emulated.behave('answer-status', { operation: look, status: 503 })
    expect(await failure(carryOut(aimed, words, payload))).toMatchObject(NOTHING_FOUND)
  })
})

describe('an answer that contradicts the request', () => {
  test.each([
    ['app autoupdate', 'OFF'],
    ['app update', '{"autoupdate":false}'],
  ] as const)('%s %s is no success', async (words, payload) => {
    const aimed = await aim()
    aimed.emulated.behave('pretend', { operation: 'updateApp', value: { id: APP, autoupdate: true } })
    expect(await failure(carryOut(aimed, words, payload))).toMatchObject({
      code: 'outcome_unknown',
      message: `The hub answered, but not with what was requested. ${LOOKED}`,
    })
  })
})

describe('a check', () => {
  const set = (payload: string) => ['app set-setting/x', payload, 'setAppSetting', 'getAppSettings'] as const
  const UNSET = ['app unset-setting/x', '', 'unsetAppSetting', 'getAppSettings'] as const
  const UNINSTALL = ['app uninstall', JSON.stringify({ confirm: APP }), 'uninstallApp', 'getApps'] as const
  const [DONE, LOST] = ['execute-then-reset', 'reset-before-executing'] as const
  const list = (...ids: string[]) => Object.fromEntries(ids.map((id) => [id, { id }]))
  const OTHERS = ['another.app', 'third.app']

  test.each([
    ['proves a setting by its value only', DONE, set('7'), { x: 8 }, UNKNOWN],
    ['proves a setting by its value only', DONE, set('null'), {}, UNKNOWN],
    ['proves a setting by its value only', DONE, set('null'), { y: null }, UNKNOWN],
    ['proves a setting by its value only', DONE, set('{"a":1}'), { x: { a: 1, b: 2 } }, UNKNOWN],
    ['does not prove that a setting is removed that it finds', LOST, UNSET, { x: null }, NOT_DONE],
    ['does not prove that a setting is removed that can be read by its name', LOST, UNSET, { y: 2 }, NOT_DONE],
    ['that is answered with an error proves nothing about a setting', DONE, UNSET, { error: 'starting up' }, UNKNOWN],
    ['proves that an app is removed by a list of all others', DONE, UNINSTALL, list('another.app'), NOT_DONE],
    ['proves that an app is removed by a list of all others', DONE, UNINSTALL, {}, NOT_DONE],
    ['proves that an app is removed by its own absence', DONE, UNINSTALL, list(APP, ...OTHERS), NOT_DONE],
    ['does not prove that an app is removed while it can be read', LOST, UNINSTALL, list(...OTHERS), NOT_DONE],
  ] as const)('%s: %s %j, %j', async (_, how, [words, payload, operation, look], value, expected) => {
    const aimed = await aim()
    aimed.emulated.behave(how, { operation })
    aimed.emulated.behave('wrong-shape', { operation: look, value })
    expect(await failure(carryOut(aimed, words, payload))).toMatchObject(expected)
  })

  test.each([
    ['app uninstall', 'answer-status', 503, JSON.stringify({ confirm: APP }), 'uninstallApp', 'getApp'],
    ['app unset-setting/x', 'answer-status', 503, '', 'unsetAppSetting', 'getAppSetting'],
    ['app uninstall', 'gateway-page', 404, JSON.stringify({ confirm: APP }), 'uninstallApp', 'getApp'],
    ['app unset-setting/x', 'gateway-page', 404, '', 'unsetAppSetting', 'getAppSetting'],
  ] as const)(
    'that fails the second time proves nothing: %s, %s %i',
    async (words, how, status, payload, operation, second) => {
      const aimed = await aim()
      aimed.emulated.behave('execute-then-reset', { operation })
      aimed.emulated.behave(how, { operation: second, status })
      expect(await failure(carryOut(aimed, words, payload))).toMatchObject(NOTHING_FOUND)
    },
  )

  test('of an empty list proves nothing, not even about the only app', async () => {
    const aimed = await aim({ apps: [{ id: APP }] })
    aimed.emulated.behave('execute-then-reset', { operation: 'uninstallApp' })
    const running = carryOut(aimed, 'app uninstall', JSON.stringify({ confirm: APP }))
    expect(await failure(running)).toMatchObject(UNKNOWN)
  })

  test('proves that a setting is removed even if a hub answers null for a missing one', async ({ aimed }) => {
    aimed.emulated.behave('execute-then-reset', { operation: 'unsetAppSetting' })
    aimed.emulated.behave('pretend', { operation: 'getAppSetting', value: null })
    expect(await carryOut(aimed, 'app unset-setting/x')).toBeNull()
  })
})

test.each([
  ['POST', `/app/${APP}/restart`, 'restartApp'],
  ['PUT', `/app/${APP}/setting/x`, 'setAppSetting'],
] as const)(
  'a generic call without a possible check stays unknown without an answer: %s %s',
  async (method, path, operation) => {
    const aimed = await aim()
    aimed.emulated.behave('reset-before-executing', { operation })
    const running = carryOut(aimed, 'hub call', JSON.stringify({ item: 'apps', method, path }))
    expect(await failure(running)).toMatchObject({ code: 'no_answer' })
    expect(operations(aimed)).toEqual([operation])
  },
)

describe('a bug in this program', () => {
  test('is neither a lost answer nor a failed check', async () => {
    const mistake = new TypeError('x')
    expect([mistake, new HubError('failed', 'x'), undefined].map(isUndecided)).toEqual([false, false, false])
    expect(isUndecided(new HubError('no_answer', 'x')) && isUndecided(new HubError('nonsense', 'x'))).toBe(true)
    await expect(tried(() => Promise.reject(mistake))).rejects.toBe(mistake)
    expect(await tried(() => Promise.reject(new HubError('failed', 'x')))).toBeUndefined()
    expect(await tried(() => Promise.resolve(7))).toBe(7)
  })

  test('nonsense stays nonsense, whatever a check shows', () => {
    const error = new HubError('nonsense', 'x')
    expect([undecided(error, true), undecided(error, false)]).toEqual([error, error])
  })
})
