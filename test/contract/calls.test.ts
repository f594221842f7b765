/** Tests that `hub/call` never does more than the permitted commands with the same effect. */
import { describe, expect } from 'vitest'
import type { Command } from '../../src/contract/command.ts'
import { COMMANDS, findCommand } from '../../src/contract/commands.ts'
import { CommandError } from '../../src/contract/errors.ts'
import { type CommandPolicy, commandKey, mayUse, refusedBy } from '../../src/contract/permissions.ts'
import { listed } from '../hub/support.ts'
import { APP, aimAt, carryOut, NEW_APP, test } from './aim.ts'

const ANYTHING = [{ item: '*', methods: ['GET', 'POST', 'PUT', 'DELETE'] }] as const
const OPEN: CommandPolicy = { allow: ['*'], deny: [], read_only: false, guarded: true, call: ANYTHING }

function callCommand(): Command {
  const found = findCommand('hub', 'call', false)
  if (found === undefined) throw new Error('no call')
  return found
}

const input = (payload: object) => callCommand().payload.read(JSON.stringify(payload)).input()
const may = (policy: Partial<CommandPolicy>, payload: object) =>
  mayUse({ ...OPEN, ...policy }, callCommand(), input(payload))

const A = '/app/com.a'
const apps = (method: string, path: string, body?: object) => ({ item: 'apps', method, path, ...(body && { body }) })

/** The commands with the same effect as a call, written down independently of the table. */
const SAME: readonly (readonly [call: object, deny: readonly string[]])[] = [
  [apps('GET', '/app'), ['get-apps', 'get', 'hub/get-apps']],
  [apps('GET', A), ['get']],
  [apps('PUT', `${A}/enable`), ['enable', 'enabled']],
  [apps('PUT', `${A}/disable`), ['disable', 'enabled']],
  [apps('POST', `${A}/restart`), ['restart']],
  [apps('POST', `${A}/gc`), ['garbage-collect']],
  [apps('POST', `${A}/crashlog`), ['get-std']],
  [apps('GET', `${A}/locale`), ['get-locales']],
  [apps('GET', `${A}/setting`), ['get-settings', 'get-setting']],
  [apps('GET', `${A}/setting/x`), ['get-settings', 'get-setting']],
  [apps('PUT', `${A}/setting/x`), ['set-setting']],
  [apps('DELETE', `${A}/setting/x`), ['unset-setting']],
  [apps('DELETE', A), ['uninstall']],
  [apps('PUT', A, { autoupdate: true }), ['autoupdate', 'update']],
  [apps('PUT', A, { channel: 'beta' }), ['update', 'install', 'enable', 'disable', 'autoupdate']],
  [apps('PUT', A, { enabled: false }), ['disable', 'enabled', 'enable']],
  [{ ...apps('PUT', A, { autoupdate: true }), query: { enabled: false } }, ['disable', 'autoupdate']],
  [{ ...apps('PUT', A), body: '{"enabled":false}' }, ['disable', 'autoupdate']],
  [{ ...apps('PUT', A), body: [{ enabled: false }] }, ['disable', 'autoupdate']],
  [apps('POST', '/store', { id: 'com.b' }), ['install', 'hub/install', 'update']],
  [{ item: 'speech-output', method: 'POST', path: '/say', body: {} }, ['speak', 'hub/speak']],
  [{ item: 'speech-output', method: 'POST', path: '/', body: {} }, ['speak']],
  [{ item: 'speech-output', method: 'POST', body: {} }, ['speak']],
]

describe('a call does not reach an operation of a denied command', () => {
  test.each(SAME)('%j: deny %j', (call, denied) => {
    expect(may({}, call)).toBe(true)
    for (const one of denied) expect(may({ deny: [one] }, call), one).toBe(false)
  })

  test('nor one with additional effects, but is not affected by commands with other operations', () => {
    expect(may({ deny: ['disable'] }, apps('PUT', `${A}/enable`))).toBe(true)
    expect(may({ deny: ['restart'] }, apps('GET', A))).toBe(true)
    expect(may({ deny: ['autoupdate'] }, apps('PUT', A, {}))).toBe(false)
    // Denying a command with a different effect does not deny the call.
    expect(may({ deny: ['guard'] }, apps('POST', `${A}/restart`))).toBe(true)
    for (const body of [{ autoupdate: true }, { autoupdate: true, id: 'com.a' }])
      expect(may({ deny: ['enable', 'disable', 'install'] }, apps('PUT', A, body))).toBe(true)
  })

  test('whichever command is denied, if it uses one operation of the hub', () => {
    const covered = new Set(SAME.flatMap(([, denied]) => denied))
    const others = COMMANDS.filter((one) => one.target !== 'bridge' && one.reaches === undefined)
      .map(commandKey)
      .filter((key) => !covered.has(key))
    // `guard` is for the guardian, `get-crash` and `get-history` answer from memory, `update-all` sends commands
    // that `SAME` covers, and `refresh` reads the list.
    expect(others).toEqual(['guard', 'get-crash', 'get-history', 'hub/update-all', 'hub/refresh'])
    const installed = apps('POST', '/store', { id: 'com.a' })
    expect(may({ allow: ['hub/call', 'hub/install'], deny: ['update-all'] }, installed)).toBe(true)
  })
})

test('a call does not reach an operation that is off by default, unless that is allowed too', () => {
  const allow = ['hub/call']
  expect(may({ allow }, apps('DELETE', A))).toBe(false)
  expect(may({ allow }, apps('POST', '/store', { id: 'com.b' }))).toBe(false)
  expect(may({ allow: [...allow, 'uninstall'] }, apps('DELETE', A))).toBe(true)
  expect(may({ allow: [...allow, 'hub/install'] }, apps('POST', '/store', { id: 'com.b' }))).toBe(true)
  expect(may({ allow }, apps('POST', `${A}/restart`))).toBe(true)
  expect(refusedBy({ ...OPEN, allow }, callCommand(), input(apps('DELETE', A)))).toMatch(
    /commands\.allow names uninstall/,
  )
})

test('a call is off until it is allowed by name, and may be denied', () => {
  const call = { item: 'notifications' }
  expect(may({ allow: [] }, call)).toBe(false)
  expect(may({ allow: ['uninstall'] }, call)).toBe(false)
  for (const name of ['hub/call', 'call', '*']) {
    expect(may({ allow: [name] }, call)).toBe(true)
    expect(may({ allow: ['*'], deny: [name] }, call)).toBe(false)
  }
})

test('a call that is refused names the reason', () => {
  const why = (policy: Partial<CommandPolicy>, payload: object) =>
    refusedBy({ ...OPEN, ...policy }, callCommand(), input(payload))
  const restart = apps('POST', `${A}/restart`)
  expect(why({ call: [] }, restart)).toBe('commands.call names no POST of this item.')
  expect(why({ deny: ['restart'] }, restart)).toBe('commands.deny names restart, which is the same.')
  expect(why({ deny: ['get-setting'] }, apps('GET', `${A}/setting`))).toBe(
    'commands.deny names a command that does the same.',
  )
  expect(why({ allow: ['call'] }, apps('DELETE', A))).toBe(
    'It is off until commands.allow names uninstall, which is the same.',
  )
  expect(why({}, restart)).toBeUndefined()
})

test('if only reading is allowed, a call may use GET', () => {
  expect(may({ read_only: true }, { item: 'notifications' })).toBe(true)
  for (const method of ['POST', 'PUT', 'DELETE']) {
    expect(may({ read_only: true }, { item: 'notifications', method })).toBe(false)
    expect(may({ read_only: true }, { section: 'app', item: 'com.a', method })).toBe(false)
  }
})

describe('the list of calls', () => {
  const rule = (...call: NonNullable<CommandPolicy['call']>) => ({ call })

  test('limits items and methods, as patterns', () => {
    const policy = rule({ item: 'notif*', methods: ['GET'] }, { item: 'flow', methods: ['POST'] })
    expect(may(policy, { item: 'notifications' })).toBe(true)
    expect(may(policy, { item: 'notifications', method: 'DELETE' })).toBe(false)
    expect(may(policy, { item: 'flow' })).toBe(false)
    expect(may(policy, { item: 'flow', method: 'POST' })).toBe(true)
    expect(may(policy, { item: 'system', path: '/ping' })).toBe(false)
    expect(may(policy, { item: 'flowtoken', method: 'POST' })).toBe(false)
  })

  test('limits the section if it names one', () => {
    const policy = rule({ item: 'com.a', methods: ['GET'] }, { section: 'manager', item: 'x', methods: ['GET'] })
    expect(may(policy, { section: 'app', item: 'com.a' })).toBe(true)
    expect(may(policy, { item: 'x' })).toBe(true)
    expect(may(policy, { section: 'app', item: 'x' })).toBe(false)
  })

  test('that is empty or missing permits no call', () => {
    const { call: _, ...without } = OPEN
    expect(may(rule(), { item: 'notifications' })).toBe(false)
    expect(mayUse(without, callCommand(), input({ item: 'notifications' }))).toBe(false)
  })
})

test('values of the query may be numbers and booleans', () => {
  expect(input({ item: 'x', query: { a: 1, b: true, c: 'd' } })).toMatchObject({ query: { a: '1', b: 'true', c: 'd' } })
})

test.each([[[]], [['a']], ['a'], [null]])('the query %j is no object and invalid', (query) => {
  expect(() => input({ item: 'x', query })).toThrow('query: expected Object.')
})

test('a call with an ambiguous path is invalid, and the reason is named', () => {
  const reading = () => input({ item: 'apps', path: 'no slash' })
  expect(reading).toThrow(CommandError)
  expect(reading).toThrow(
    expect.objectContaining({
      code: 'invalid_payload',
      message: expect.stringMatching(/^path: /),
      cause: expect.anything(),
    }),
  )
})

test("the answer of a call is the hub's, without apps that the configuration hides", async ({ emulate, hold }) => {
  const emulated = await emulate({
    flavour: 'older',
    apps: [{ id: APP, settings: { [NEW_APP]: 1 } }, { id: NEW_APP }],
  })
  const held = hold(emulated.url, { realtime: false, shows: (id) => id !== NEW_APP })
  await listed(held)
  const aimed = aimAt(held.hub)
  expect(Object.keys(Object(await carryOut(aimed, 'hub call', JSON.stringify(apps('GET', '/app')))))).toEqual([APP])
  expect(await carryOut(aimed, 'hub call', JSON.stringify(apps('GET', `/app/${APP}/setting`)))).toEqual({
    [NEW_APP]: 1,
  })
  for (const value of [null, 'starting up']) {
    emulated.behave('pretend', { operation: 'getApps', value })
    expect(await carryOut(aimed, 'hub call', JSON.stringify(apps('GET', '/app')))).toBe(value)
  }
})
