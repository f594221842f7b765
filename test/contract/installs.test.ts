/** Tests how the bridge confirms that an install has succeeded, and how long it waits for the confirmation. */
import { describe, expect } from 'vitest'
import type { Target } from '../../src/contract/command.ts'
import { listed } from '../hub/support.ts'
import { type Aim, APP, aim, aimAt, carryOut, failure, NEW_APP, test } from './aim.ts'

const installs = ({ emulated }: Aim) =>
  emulated.requests.filter(({ operation }) => operation === 'installFromAppStore').map(({ body }) => body)
const pauses = ({ clock }: Aim) => clock.waits
const MINUTE = [0, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]

describe('an install that the hub answered', () => {
  test('is ok immediately if nothing particular was requested', async ({ aimed }) => {
    expect(await carryOut(aimed, 'app install')).toBeNull()
    expect(await carryOut(aimed, 'hub install', JSON.stringify({ id: NEW_APP }))).toBeNull()
    expect(installs(aimed)).toEqual([{ id: APP }, { id: NEW_APP }])
    expect(pauses(aimed)).toEqual([])
  })

  test.each([
    ['version', '1.1.0'],
    ['channel', 'beta'],
  ])('is ok when the list shows the %s', async (key, value) => {
    const aimed = await aim()
    expect(await carryOut(aimed, 'app install', JSON.stringify({ [key]: value }))).toBeNull()
    expect(installs(aimed)).toEqual([{ id: APP, [key]: value }])
    expect(pauses(aimed)).toEqual([0])
  })

  test.each([
    ['version', '9.9.9'],
    ['channel', 'beta'],
  ])('is a failure if the list does not show such a %s within a minute', async (key, value) => {
    const aimed = await aim()
    aimed.emulated.behave('pretend', { operation: 'installFromAppStore', value: null })
    expect(await failure(carryOut(aimed, 'app install', JSON.stringify({ [key]: value })))).toMatchObject({
      code: 'hub_failed',
      message: 'The hub accepted the install, but not the requested version or channel.',
    })
    expect(pauses(aimed)).toEqual(MINUTE)
  })

  test.each(['version', 'channel'])('is ok if the records of the hub have no %s', async (key) => {
    const aimed = await aim({ apps: [{ id: APP, record: { [key]: undefined } }, { id: 'another.app' }] })
    aimed.emulated.behave('pretend', { operation: 'installFromAppStore', value: null })
    expect(await carryOut(aimed, 'app install', JSON.stringify({ [key]: '9.9.9' }))).toBeNull()
    expect(pauses(aimed)).toEqual([0])
  })

  test('is no longer checked when the bridge ends, so that its outcome is unknown', async ({ aimed }) => {
    aimed.end()
    const failed = await failure(carryOut(aimed, 'app install', '{"version":"1.1.0"}'))
    expect(failed).toMatchObject({ code: 'outcome_unknown' })
  })

  test('has an unknown outcome if no list can be read within a minute', async ({ aimed }) => {
    aimed.emulated.behave('answer-status', { operation: 'getApps', status: 503 })
    const failed = await failure(carryOut(aimed, 'app install', '{"version":"1.1.0"}'))
    expect(failed).toMatchObject({ code: 'outcome_unknown' })
    expect(pauses(aimed)).toEqual(MINUTE)
  })

  test.each([
    ['newer', '12.4.0', 'both', { waitForInstall: true }],
    ['newer', '10.0.0', 'both', { waitForInstall: true }],
    ['newer', '9.9.9', 'both', {}],
    ['newer', '12.4.0', 'managers', {}],
    ['older', '8.1.6', 'both', {}],
    ['reference', '12.4.0', 'managers', {}],
  ] as const)('on a %s hub with firmware %s under %s is sent with %j', async (flavour, version, prefix, more) => {
    const aimed = await aim({ flavour, version, prefix })
    await carryOut(aimed, 'app install', '{"version":"1.1.0"}')
    await carryOut(aimed, 'hub install', JSON.stringify({ id: NEW_APP }))
    expect(installs(aimed)).toEqual([
      { id: APP, version: '1.1.0', ...more },
      { id: NEW_APP, ...more },
    ])
  })
})

describe('an install without an answer', () => {
  test.each([
    ['the update of an app', 'app install', '', []],
    ['a new app', 'hub install', JSON.stringify({ id: NEW_APP }), []],
    ['another channel', 'app install', '{"channel":"beta"}', []],
  ])('is ok if a check shows the change: %s', async (_, words, payload) => {
    const aimed = await aim()
    aimed.emulated.behave('execute-then-reset', { operation: 'installFromAppStore' })
    expect(await carryOut(aimed, words, payload)).toBeNull()
    expect(pauses(aimed)).toEqual([0])
  })

  test.for([
    ['if no check was answered', {}],
    ['if the list could be read only afterwards', { times: 2 }],
  ] as const)('is unknown, without a result of the check, %s', async ([, more], { aimed }) => {
    aimed.emulated.behave('execute-then-reset', { operation: 'installFromAppStore' })
    aimed.emulated.behave('reset-before-executing', { operation: 'getApps', ...more })
    const message = expect.not.stringContaining('look')
    expect(await failure(carryOut(aimed, 'app install'))).toMatchObject({ code: 'outcome_unknown', message })
  })

  test.each([
    ['app install', ''],
    ['hub install', JSON.stringify({ id: 'another.app' })],
  ])('is unknown after a minute without a change: %s %s', async (words, payload) => {
    const aimed = await aim()
    aimed.emulated.behave('reset-before-executing', { operation: 'installFromAppStore' })
    expect(await failure(carryOut(aimed, words, payload))).toMatchObject({
      code: 'outcome_unknown',
      message: expect.stringContaining('A look at the hub finds it not done so far.'),
    })
    expect(pauses(aimed)).toEqual(MINUTE)
    expect(installs(aimed)).toHaveLength(1)
  })

  test('is not proved by a change that was not requested', async ({ aimed }) => {
    aimed.emulated.behave('execute-then-reset', { operation: 'installFromAppStore' })
    const running = carryOut(aimed, 'app install', '{"channel":"beta","version":"9.9.9"}')
    expect(await failure(running)).toMatchObject({ code: 'outcome_unknown' })
  })

  test.each([null, 'no version'])('is not proved by a version that was %j before', async (version) => {
    const unknown = { id: APP, update: '1.1.0', record: { version, channel: null } }
    const aimed = await aim({ apps: [unknown, { id: 'another.app' }] })
    aimed.emulated.behave('execute-then-reset', { operation: 'installFromAppStore' })
    expect(await failure(carryOut(aimed, 'app install'))).toMatchObject({ code: 'outcome_unknown' })
  })

  test('is not waited for if no list was read before: no check could prove it', async ({ aimed }) => {
    aimed.emulated.behave('answer-status', { operation: 'getApps', status: 503, times: 1 })
    aimed.emulated.behave('execute-then-reset', { operation: 'installFromAppStore' })
    expect(await failure(carryOut(aimed, 'app install'))).toMatchObject({ code: 'outcome_unknown' })
    expect(pauses(aimed)).toEqual([0])
  })

  test('is checked once more if the answer was nonsense, and the check decides', async () => {
    const done = await aim()
    done.emulated.behave('wrong-shape', { operation: 'installFromAppStore', value: { error: 'odd' } })
    expect(await carryOut(done, 'app install')).toBeNull()
    const not = await aim()
    not.emulated.behave('pretend', { operation: 'installFromAppStore', value: { error: 'odd' } })
    expect(await failure(carryOut(not, 'app install'))).toMatchObject({ code: 'nonsense' })
    expect([pauses(done), pauses(not)]).toEqual([[0], [0]])
  })
})

describe('the update of an app', () => {
  test.each([
    ['app install', ''],
    ['app update', '{"channel":"beta"}'],
  ])('never installs an app that the hub does not have: %s %s', async (words, payload) => {
    const aimed = await aim()
    const others = { 'another.app': { id: 'another.app' }, 'third.app': { id: 'third.app' } }
    aimed.emulated.behave('wrong-shape', { operation: 'getApps', value: others })
    expect(await failure(carryOut(aimed, words, payload))).toMatchObject({ code: 'unknown_app' })
    const stranger = { ...aimed, target: { ...aimed.target, app: NEW_APP } }
    aimed.emulated.behave('answer-status', { operation: 'getApps', status: 503 })
    expect(await failure(carryOut(stranger, words, payload))).toMatchObject({ code: 'unknown_app' })
    expect(installs(aimed)).toEqual([])
  })

  test('is requested if the list cannot be read and the app was installed before', async ({ aimed }) => {
    aimed.emulated.behave('answer-status', { operation: 'getApps', status: 503 })
    expect(await carryOut(aimed, 'app install')).toBeNull()
    expect(installs(aimed)).toEqual([{ id: APP }])
  })
})

describe('another channel', () => {
  test.each([
    ['older', 'stable', 'beta'],
    ['newer', 'live', 'test'],
  ] as const)('on a %s hub is an install from it, and nothing if it is %s already', async (flavour, present, other) => {
    const aimed = await aim({ flavour })
    await carryOut(aimed, 'app update', JSON.stringify({ channel: present }))
    expect(installs(aimed)).toEqual([])
    await carryOut(aimed, 'app update', JSON.stringify({ channel: other }))
    expect(installs(aimed)).toMatchObject([{ id: APP, channel: other }])
    expect(aimed.emulated.apps.get(APP)?.channel).toBe(other)
  })

  test('is tried if the current channel is not known', async ({ aimed }) => {
    aimed.emulated.behave('answer-status', { operation: 'getApps', status: 503, times: 1 })
    await carryOut(aimed, 'app update', '{"channel":"stable"}')
    expect(installs(aimed)).toEqual([{ id: APP, channel: 'stable' }])
  })
})

test('an app that the configuration hides is not installed', async ({ emulate, hold }) => {
  const emulated = await emulate({ flavour: 'older', apps: [{ id: APP }] })
  const held = hold(emulated.url, { realtime: false, shows: (id) => id !== NEW_APP })
  await listed(held)
  expect(await failure(carryOut(aimAt(held.hub), 'hub install', JSON.stringify({ id: NEW_APP })))).toMatchObject({
    code: 'not_allowed',
    message: 'apps.include or apps.exclude hides the app.',
  })
  expect(emulated.apps.has(NEW_APP)).toBe(false)
})

describe('all updates of a hub', () => {
  const apps = ['a', 'b', 'c'].map((id) => ({ id, update: '1.1.0' }))
  const updated = (aimed: Aim) => installs(aimed).map((body) => Object(body).id)
  const withUpdates = () => aim({ apps: [...apps, { id: 'd' }] })

  test('are the available ones, one after the other', async () => {
    const aimed = await withUpdates()
    expect(await carryOut(aimed, 'hub update-all')).toEqual({ updated: ['a', 'b', 'c'] })
    expect(updated(aimed)).toEqual(['a', 'b', 'c'])
    const { target } = await aim({ apps: [{ id: 'd' }] })
    expect(await carryOut({ ...aimed, target }, 'hub update-all')).toEqual({ updated: [] })
  })

  test('leave out an app whose hub keeps offering the installed version', async () => {
    const aimed = await aim({ apps: [...apps, { id: 'd', version: '1.2.0', record: { updateAvailable: '1.2.0' } }] })
    expect(await carryOut(aimed, 'hub update-all')).toEqual({ updated: ['a', 'b', 'c'] })
    expect(updated(aimed)).toEqual(['a', 'b', 'c'])
  })

  test('continue after one that fails, and the first failure is named', async () => {
    const aimed = await withUpdates()
    aimed.emulated.behave('answer-status', { operation: 'installFromAppStore', status: 503, times: 2 })
    const failed = await failure(carryOut(aimed, 'hub update-all'))
    expect(failed).toMatchObject({ code: 'hub_failed', status: 503, data: { done: ['c'] } })
    expect(failed).toMatchObject({ message: expect.stringMatching(/^2 of 3 updates failed; a: ./) })
    expect(updated(aimed)).toEqual(['a', 'b', 'c'])
  })

  /** Runs `act` right before the first install is sent. */
  const meanwhile = (aimed: Aim, act: () => unknown): Aim => {
    const send: Target['send'] = async (id, command) => {
      if (id === 'a') await act()
      return await aimed.target.send(id, command)
    }
    return { ...aimed, target: { ...aimed.target, send } }
  }

  test('stop when the bridge ends', async () => {
    const aimed = await withUpdates()
    expect(await failure(carryOut(meanwhile(aimed, aimed.end), 'hub update-all'))).toMatchObject({
      code: 'expired',
      message: expect.stringMatching(/^2 of 3 updates failed; b: /),
      data: { done: ['a'] },
    })
    expect(updated(aimed)).toEqual(['a'])
  })

  test('leave out an app that was removed in between', async () => {
    const aimed = await withUpdates()
    const remove = async () => {
      aimed.emulated.uninstall('b')
      await aimed.target.hub.refresh()
    }
    expect(await carryOut(meanwhile(aimed, remove), 'hub update-all')).toEqual({ updated: ['a', 'c'] })
  })
})
