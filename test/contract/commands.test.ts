/** Compares every row of the table of commands with the requests that the hub receives. */
import { describe, expect } from 'vitest'
import type { Command } from '../../src/contract/command.ts'
import { COMMANDS, effectiveCommand, findCommand, isAudited } from '../../src/contract/commands.ts'
import type { GuardControl } from '../../src/contract/guard.ts'
import { LOG_LEVELS, type LogLevel } from '../../src/contract/log-levels.ts'
import { OPERATIONS } from '../../src/hub/operations.ts'
import { APP, aim, carryOut, failure, NEW_APP, named, operations, test } from './aim.ts'

interface Case {
  readonly payload?: string
  /** The expected operation of the hub and its body. Without an operation, the bridge answers from memory. */
  readonly asks?: readonly [operation?: string, body?: unknown]
  readonly data?: unknown
}

const CASES: Readonly<Record<string, Case>> = {
  'app enable': { asks: ['enableApp'], data: null },
  'app disable': { payload: '{"message":"m"}', asks: ['disableApp'], data: null },
  'app enabled': { payload: 'ON', asks: ['enableApp'], data: null },
  'app restart': { asks: ['restartApp'] },
  'app garbage-collect': { asks: ['garbageCollectApp'] },
  'app get': { asks: ['getApp'], data: { id: APP, name: 'The app', version: '1.0.0' } },
  'app get-std': { payload: '{"message":"m"}', asks: ['getAppStd', { message: 'm' }], data: null },
  'app get-settings': { asks: ['getAppSettings'], data: { x: 1, y: 2 } },
  'app get-crash': { data: { markdown: null } },
  'app get-history': {
    payload: '{"hours":1}',
    data: { resolution_seconds: 60, cpu_percent: [], memory_bytes: [], source: 'bridge' },
  },
  'app get-locales': { asks: ['getAppLocales'], data: { en: { title: 'The app' } } },
  'app update': { payload: '{"autoupdate":false}', asks: ['updateApp', { autoupdate: false }] },
  'app autoupdate': { payload: 'OFF', asks: ['updateApp', { autoupdate: false }], data: null },
  'app install': {
    payload: '{"channel":"beta"}',
    asks: ['installFromAppStore', { id: APP, channel: 'beta' }],
    data: null,
  },
  'app uninstall': { payload: JSON.stringify({ confirm: APP }), asks: ['uninstallApp'], data: null },
  'app get-setting/x': { asks: ['getAppSetting'], data: 1 },
  'app get-setting': { payload: '{"name":"y"}', asks: ['getAppSetting'], data: 2 },
  'app set-setting/x': { payload: '[7]', asks: ['setAppSetting', { value: [7] }], data: null },
  'app set-setting': { payload: '{"name":"z","value":null}', asks: ['setAppSetting', { value: null }], data: null },
  'app unset-setting/x': { asks: ['unsetAppSetting'], data: null },
  'app unset-setting': { payload: '{"name":"y"}', asks: ['unsetAppSetting'], data: null },
  'hub get-apps': { asks: ['getApps'], data: { 'another.app': { id: 'another.app' } } },
  'hub install': {
    payload: JSON.stringify({ id: NEW_APP }),
    asks: ['installFromAppStore', { id: NEW_APP }],
    data: null,
  },
  'hub update-all': { asks: ['installFromAppStore', { id: APP }], data: { updated: [APP] } },
  'hub speak': { payload: 'Hello', asks: ['say', { text: 'Hello' }] },
  'hub call': {
    payload: '{"item":"apps","path":"/app/the.app/locale"}',
    asks: ['getAppLocales'],
    data: { en: { title: 'The app' } },
  },
  'hub refresh': { asks: ['getApps'] },
}

/** A text that is longer than allowed. */
const long = (allowed: number) => 'x'.repeat(allowed + 1)
const ofApps = (more: string) => `{"item":"apps",${more}}`
const wordsOf = ({ target, name, argument }: Command) => `${target} ${name}${argument === undefined ? '' : '/x'}`
/** The commands for a hub, except those for the guardian, which send no request to the hub. */
const ofHubs = COMMANDS.filter((one) => one.target !== 'bridge' && one.needs === undefined).map(wordsOf)

describe('a command', () => {
  test.each(ofHubs)('sends the request of its row: %s', async (words) => {
    const { payload, asks: [operation, body] = [], data } = CASES[words] ?? {}
    const { command: row } = named(words)
    if (row.target === 'bridge') throw new Error('no hub is asked')
    const command = effectiveCommand(row, row.payload.read(payload ?? '').input())
    if (command.operation === null) throw new Error('nothing that is known is asked')
    const aimed = await aim()
    const found = await carryOut(aimed, words, payload)
    if (data !== null && typeof data === 'object') expect(found).toMatchObject(data)
    else expect(found).toBe(data)
    // Ignore reads, with which the bridge checks the hub.
    const { requests } = aimed.emulated
    if (operation === undefined) return expect(requests).toEqual([])
    const asked = command.write ? requests.filter(({ method }) => method !== 'GET') : requests
    const same = asked.filter((request) => request.operation === operation)
    expect(same[0]?.body).toEqual(body)
    if (command.write) expect(asked).toHaveLength(1)
    else expect(asked.map(({ method }) => method)).not.toContain('PUT')
    expect(same[0]?.method, 'the operation whose permission is looked at').toBe(OPERATIONS[command.operation].method)
    expect(operation === 'say' ? 'speak' : operation).toBe(command.operation)
    expect(command.write).toBe(asked.some(({ method }) => method !== 'GET'))
  })

  test('is found by its topic, with and without an argument', () => {
    for (const command of COMMANDS)
      expect(findCommand(command.target, command.name, command.argument !== undefined)).toBe(command)
    expect(findCommand('app', 'restart', true)).toBeUndefined()
    expect(findCommand('hub', 'restart', false)).toBeUndefined()
    expect(findCommand('app', 'set-setting', true)).not.toBe(findCommand('app', 'set-setting', false))
  })

  test.for<[words: string, payloads: readonly string[]]>([
    ['app restart', ['{"message":7}', `{"message":"${long(1024)}"}`]],
    ['app enabled', ['On']],
    ['app autoupdate', ['']],
    ['app get', ['{"raw":"yes"}']],
    ['app get-crash', ['{"hours":1}']],
    ['app get-history', ['0', '169', '1.5', '"24"', 'null'].map((hours) => `{"hours":${hours}}`)],
    ['app update', ['{}', '{"autoupdate":"ON"}', '{"channel":""}']],
    ['app install', ['{"channel":""}', `{"channel":"${long(64)}"}`]],
    ['app install', ['{"version":""}', `{"version":"${long(64)}"}`]],
    [
      'app uninstall',
      ['', '{"confirm":true}', '{"confirm":"another.app"}', `{"confirm":"${APP}","purge_settings":"yes"}`],
    ],
    ['app get-setting', ['{"name":""}', `{"name":"${long(256)}"}`]],
    ['app set-setting', ['{"value":1}']],
    ['app unset-setting', ['{}']],
    ['hub get-apps', ['[]', '{"nme":"x"}', '{"name":{}}', '{"state":"dancing"}'].map((one) => `{"filter":${one}}`)],
    ['hub install', ['{"id":""}', `{"id":"${long(256)}"}`, '{"id":"x","version":7}']],
    ['hub install', ['{"id":"x","version":""}', `{"id":"x","version":"${long(64)}"}`]],
    ['hub install', ['{"id":"x","channel":""}', `{"id":"x","channel":"${long(64)}"}`]],
    ['hub update-all', ['{"message":"m"}']],
    ['hub speak', ['{"text":7}']],
    ['app guard', ['', '{}', 'On', '{"enabled":"ON"}', '{"forget":false}']],
    ['app guard', ['"soon"', '"999ms"', '60'].map((snooze) => `{"snooze":${snooze}}`)],
    ['hub refresh', ['{"message":"m"}']],
    ['hub call', ['', '{}', '{"item":""}', '{"item":["apps"]}', '{"item":"apps","section":"managers"}']],
    ['hub call', ['"method":"get"', '"method":"PATCH"', '"path":5', '"path":"/app/../x"'].map(ofApps)],
    ['hub call', ['"query":"id=1"', '"query":{"a":[1]}', '"headers":{}', '"body":{}'].map(ofApps)],
  ])('refuses invalid input without a request: %s %j', async ([words, payloads], { aimed }) => {
    for (const payload of payloads)
      expect(await failure(carryOut(aimed, words, payload)), payload).toMatchObject({ code: 'invalid_payload' })
    expect(operations(aimed)).toEqual([])
  })

  test.each([
    ['app restart', `{"message":"${'x'.repeat(1024)}"}`],
    ['app get-setting', `{"name":"${'x'.repeat(256)}"}`],
    ['app install', `{"channel":"${'x'.repeat(64)}","version":"${'1'.repeat(64)}"}`],
    ['hub install', `{"id":"${'x'.repeat(256)}"}`],
    ['hub get-apps', '{"filter":{"name":null,"enabled":true,"crash_count":0,"state":"running"}}'],
    ['hub get-apps', '{"filter":{"state":null,"version":"1.0.0"}}'],
  ])('accepts input of the maximum length: %s', (words, payload) => {
    expect(named(words).command.payload.read(payload).input()).toBeDefined()
  })
})

describe('details of a command:', () => {
  test('a switch can turn off too', async ({ aimed }) => {
    for (const [payload, enabled] of [
      ['OFF', false],
      ['true', true],
      ['false', false],
      ['ON', true],
    ] as const) {
      await carryOut(aimed, 'app enabled', payload)
      expect(aimed.emulated.apps.get(APP)?.enabled).toBe(enabled)
      await carryOut(aimed, 'app autoupdate', payload)
      expect(aimed.emulated.apps.get(APP)?.autoupdate).toBe(enabled)
    }
  })

  test('a switch accepts the words of all kinds of clients', () => {
    const taken = (words: string, payload: string) => named(words).command.payload.read(payload).input()
    for (const words of ['app enabled', 'app autoupdate', 'app guard']) {
      expect(['ON', 'on', 'true', '1'].map((payload) => taken(words, payload))).toEqual([true, true, true, true])
      expect(['OFF', 'off', 'false', '0'].map((payload) => taken(words, payload))).toEqual([false, false, false, false])
    }
  })

  test.each([
    ['ON', { enabled: true }],
    ['off', { enabled: false }],
    ['{"enabled":false}', { enabled: false }],
    ['{"snooze":"1500ms"}', { snooze: 1500 }],
    ['{"forget":true}', { forget: true }],
    ['{"enabled":true,"snooze":"2h","forget":true}', { enabled: true, snooze: 7_200_000, forget: true }],
  ])('guard passes its input to the guardian, and sends the hub no request: %s', async (payload, control) => {
    const aimed = await aim()
    const controls: GuardControl[] = []
    const target = { ...aimed.target, guard: (one: GuardControl) => controls.push(one) }
    expect(await carryOut({ ...aimed, target }, 'app guard', payload)).toBeNull()
    expect(controls).toEqual([control])
    expect(operations(aimed)).toEqual([])
  })

  test('get-history covers a day, or the requested hours, up to a week', async ({ aimed }) => {
    const asked: number[] = []
    const history = (hours: number) => {
      asked.push(hours)
      return aimed.target.history(hours)
    }
    for (const payload of ['', '{"hours":1}', '{"hours":168}'])
      await carryOut({ ...aimed, target: { ...aimed.target, history } }, 'app get-history', payload)
    expect(asked).toEqual([24, 1, 168])
  })

  test('refresh restores everything on the broker, even if the hub cannot be read', async ({ aimed }) => {
    let repairs = 0
    const target = {
      ...aimed.target,
      repair: () => {
        repairs += 1
      },
    }
    await carryOut({ ...aimed, target }, 'hub refresh')
    aimed.emulated.behave('answer-status', { operation: 'getApps', status: 503 })
    expect(await failure(carryOut({ ...aimed, target }, 'hub refresh'))).toMatchObject({ code: 'failed' })
    expect(repairs).toBe(2)
  })

  test('a command for the whole hub concerns the app that its input names', () => {
    const about = (words: string, payload: string) => {
      const { command } = named(words)
      if (command.target === 'bridge') throw new Error('no hub is asked')
      return command.about?.(command.payload.read(payload).input())
    }
    expect(about('hub install', '{"id":"com.a"}')).toBe('com.a')
    expect(about('hub call', '{"item":"apps","path":"/app/com.a"}')).toBe('com.a')
    expect(about('hub call', '{"item":"flow"}')).toBeNull()
  })

  test('a generic call is a write unless it only reads, and any other command is what its row states', () => {
    const { command } = named('hub call')
    if (command.target === 'bridge') throw new Error('no hub is asked')
    const of = (payload: string) => effectiveCommand(command, command.payload.read(payload).input())
    expect(of('{"item":"apps","path":"/app"}')).toMatchObject({ name: 'call', operation: 'getApps', write: false })
    expect(of('{"item":"flow","method":"POST"}')).toMatchObject({ name: 'call', operation: null, write: true })
    expect(effectiveCommand(command, undefined)).toBe(command)
    const unaudited = COMMANDS.filter((one) => !isAudited(one)).map(({ name }) => name)
    expect(unaudited).toEqual(
      COMMANDS.filter(({ name }) => /^(get(?!-std)|ping$|refresh$)/.test(name)).map(({ name }) => name),
    )
    expect(isAudited(undefined)).toBe(true)
  })

  test("get adds the hub's own record on request", async () => {
    const aimed = await aim()
    expect(await carryOut(aimed, 'app get')).not.toHaveProperty('raw')
    expect(await carryOut(aimed, 'app get', '{"raw":false}')).not.toHaveProperty('raw')
    expect(await carryOut(aimed, 'app get', '{"raw":true}')).toMatchObject({
      id: APP,
      raw: { id: APP, exitCount: expect.anything() },
    })
  })

  test('get-apps keeps the apps that equal its filter', async ({ aimed }) => {
    aimed.emulated.disable('third.app')
    const keys = async (payload: string) => Object.keys((await carryOut(aimed, 'hub get-apps', payload)) ?? {})
    expect(await keys('{"filter":{"enabled":true}}')).toEqual([APP, 'another.app'])
    expect(await keys('{"filter":{"enabled":true,"name":"The app"}}')).toEqual([APP])
  })

  test('uninstall keeps or removes the settings as requested', async () => {
    for (const purge of [true, false, undefined]) {
      const aimed = await aim()
      await carryOut(aimed, 'app uninstall', JSON.stringify({ confirm: APP, purge_settings: purge }))
      const [{ path } = { path: '' }] = aimed.emulated.requests
      expect(path.split('?')[1]).toBe(purge ? 'purgeSettings=true' : undefined)
    }
  })

  test('update changes automatic updates first, and reports that if the channel fails', async ({ aimed }) => {
    const both = '{"autoupdate":false,"channel":"beta"}'
    await carryOut(aimed, 'app update', both)
    expect(operations(aimed)).toEqual(['updateApp', 'installFromAppStore'])
    aimed.emulated.behave('answer-status', { status: 503, operation: 'installFromAppStore' })
    const failed = await failure(carryOut(aimed, 'app update', '{"autoupdate":true,"channel":"alpha"}'))
    expect(failed).toMatchObject({ code: 'hub_failed', data: { done: ['autoupdate'] } })
    aimed.emulated.forgetRequests()
    expect(await failure(carryOut(aimed, 'app update', '{"channel":"alpha"}'))).toMatchObject({ data: undefined })
    expect(operations(aimed)).toEqual(['installFromAppStore'])
  })

  test('commands of the bridge act on the bridge', async () => {
    const levels: LogLevel[] = []
    const times: (number | undefined)[] = []
    const control = {
      setLogLevel: (level: LogLevel, forMs?: number) => {
        levels.push(level)
        times.push(forMs)
      },
      rollouts: {
        rollOut: async (transaction: string, { app }: { readonly app: string }) => ({ transaction, app }),
        cancelRollout: async (transaction: string) => ({ transaction }),
      },
    }
    const act = (words: string, payload: string) => {
      const { command } = named(words)
      if (command.target !== 'bridge') throw new Error('it is for a hub')
      const { input, transaction } = command.payload.read(payload)
      return command.act(control, input(), transaction)
    }
    for (const level of LOG_LEVELS) await act('bridge log-level', level)
    await act('bridge ping', '')
    expect(levels).toEqual(LOG_LEVELS)
    expect(() => act('bridge log-level', 'loud')).toThrow('Expected')
    await act('bridge log-level', '{"level":"debug","for":"10m"}')
    expect(times).toEqual([...LOG_LEVELS.map(() => undefined), 600_000])
    for (const payload of ['{"level":"debug"}', '{"level":"loud","for":"10m"}', '{"level":"debug","for":"10"}'])
      expect(() => act('bridge log-level', payload), payload).toThrow()
    expect(() => act('bridge log-level', '{"level":"debug","for":"1ms"}')).toThrow('for: ')
    expect(() => act('bridge ping', 'x')).toThrow('Expected')
    const order = '{"command":"restart","app":"a.*","transaction":7}'
    expect(await act('bridge rollout', order)).toEqual({ transaction: '7', app: 'a.*' })
    expect(await act('bridge rollout-cancel', '{"transaction":"7"}')).toEqual({ transaction: '7' })
    for (const unnamed of ['', ',"transaction":""'])
      expect(() => act('bridge rollout', `{"command":"restart","app":"a"${unnamed}}`)).toThrow(
        expect.objectContaining({
          code: 'invalid_payload',
          message: 'transaction: expected the name of the rollout.',
        }),
      )
    expect(() => act('bridge rollout', '{"command":"uninstall","app":"a","transaction":1}')).toThrow('command: ')
    const audited = COMMANDS.filter((one) => one.target === 'bridge' && one.audited).map(({ name }) => name)
    expect(audited).toEqual(['log-level', 'rollout', 'rollout-cancel'])
  })
})
