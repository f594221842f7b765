/** Every row of the table of commands, against what a hub is asked for by it. */
import { readFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import type { Command } from '../../src/contract/command.ts'
import { COMMANDS, effectiveCommand, findCommand } from '../../src/contract/commands.ts'
import { LOG_LEVELS, type LogLevel } from '../../src/contract/log-levels.ts'
import { OPERATIONS } from '../../src/hub/operations.ts'
import { APP, aim, carryOut, failure, NEW_APP, named, operations, test } from './aim.ts'

interface Case {
  readonly payload?: string
  /** The operation of the hub, and its body if it has one. */
  /** None: what the bridge knows is the answer. */
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

const wordsOf = ({ target, name, argument }: Command) => `${target} ${name}${argument === undefined ? '' : '/x'}`
/** What is for the guardian asks the hub for nothing. */
const ofHubs = COMMANDS.filter((one) => one.target !== 'bridge' && one.needs === undefined).map(wordsOf)

describe('a command', () => {
  test.each(ofHubs)('asks the hub for what its row says: %s', async (words) => {
    const { payload, asks: [operation, body] = [], data } = CASES[words] ?? {}
    const { command: row } = named(words)
    if (row.target === 'bridge') throw new Error('no hub is asked')
    const command = effectiveCommand(row, row.payload.read(payload ?? '').input())
    if (command.operation === null) throw new Error('nothing that is known is asked')
    const aimed = await aim()
    const found = await carryOut(aimed, words, payload)
    if (data !== null && typeof data === 'object') expect(found).toMatchObject(data)
    else expect(found).toBe(data)
    // Looks at the hub besides change nothing.
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

  test.each(COMMANDS.map((command) => [wordsOf(command), command.doc]))('is documented: %s', (_, doc) => {
    expect(doc).toMatch(/^[A-Z].*\.$/)
    expect(readFileSync('docs/mqtt.md', 'utf8')).toContain(doc)
  })

  test('is found by its topic alone, with and without an argument', () => {
    for (const command of COMMANDS)
      expect(findCommand(command.target, command.name, command.argument !== undefined)).toBe(command)
    expect(findCommand('app', 'restart', true)).toBeUndefined()
    expect(findCommand('hub', 'restart', false)).toBeUndefined()
    expect(findCommand('app', 'set-setting', true)).not.toBe(findCommand('app', 'set-setting', false))
  })

  test.each([
    ['app restart', '{"message":7}'],
    ['app restart', `{"message":"${'x'.repeat(1025)}"}`],
    ['app enabled', 'On'],
    ['app autoupdate', ''],
    ['app get', '{"raw":"yes"}'],
    ['app get-crash', '{"hours":1}'],
    ['app get-history', '{"hours":0}'],
    ['app get-history', '{"hours":169}'],
    ['app get-history', '{"hours":1.5}'],
    ['app get-history', '{"hours":"24"}'],
    ['app get-history', '{"hours":null}'],
    ['app update', '{}'],
    ['app update', '{"autoupdate":"ON"}'],
    ['app update', '{"channel":""}'],
    ['app install', '{"channel":""}'],
    ['app install', `{"channel":"${'x'.repeat(65)}"}`],
    ['app install', '{"version":""}'],
    ['app install', `{"version":"${'1'.repeat(65)}"}`],
    ['app uninstall', ''],
    ['app uninstall', '{"confirm":"another.app"}'],
    ['app uninstall', `{"confirm":"${APP}","purge_settings":"yes"}`],
    ['app get-setting', '{"name":""}'],
    ['app get-setting', `{"name":"${'x'.repeat(257)}"}`],
    ['app set-setting', '{"value":1}'],
    ['app unset-setting', '{}'],
    ['hub get-apps', '{"filter":[]}'],
    ['hub get-apps', '{"filter":{"nme":"x"}}'],
    ['hub get-apps', '{"filter":{"name":{}}}'],
    ['hub get-apps', '{"filter":{"state":"dancing"}}'],
    ['hub install', '{"id":""}'],
    ['hub install', `{"id":"${'x'.repeat(257)}"}`],
    ['hub install', '{"id":"x","version":7}'],
    ['hub refresh', '{"message":"m"}'],
  ])('takes no nonsense and asks nothing then: %s %s', async (words, payload) => {
    const aimed = await aim()
    expect(await failure(carryOut(aimed, words, payload))).toMatchObject({ code: 'invalid_payload' })
    expect(operations(aimed)).toEqual([])
  })

  test.each([
    ['app restart', `{"message":"${'x'.repeat(1024)}"}`],
    ['app get-setting', `{"name":"${'x'.repeat(256)}"}`],
    ['app install', `{"channel":"${'x'.repeat(64)}","version":"${'1'.repeat(64)}"}`],
    ['hub install', `{"id":"${'x'.repeat(256)}"}`],
    ['hub get-apps', '{"filter":{"name":null,"enabled":true,"crash_count":0,"state":"running"}}'],
    ['hub get-apps', '{"filter":{"state":null,"version":"1.0.0"}}'],
    ['app enabled', 'true'],
    ['app enabled', 'false'],
    ['app enabled', 'OFF'],
  ])('takes what is as long as it may be: %s', (words, payload) => {
    expect(named(words).command.payload.read(payload).input()).toBeDefined()
  })
})

describe('what a command does besides', () => {
  test('a switch turns off too', async ({ aimed }) => {
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

  test("get adds the hub's own record where that is asked for", async () => {
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

  test('uninstall wants to be told the id of the app', async () => {
    const running = carryOut(await aim(), 'app uninstall', '{"confirm":"another.app"}')
    expect(await failure(running)).toMatchObject({ message: 'confirm: expected the id of the app.' })
  })

  test('uninstall keeps or removes the settings as it is told', async () => {
    for (const purge of [true, false, undefined]) {
      const aimed = await aim()
      await carryOut(aimed, 'app uninstall', JSON.stringify({ confirm: APP, purge_settings: purge }))
      const [{ path } = { path: '' }] = aimed.emulated.requests
      expect(path.split('?')[1]).toBe(purge === undefined ? undefined : `purgeSettings=${purge}`)
    }
  })

  test('update changes automatic updates first, and says so when the channel fails', async ({ aimed }) => {
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
    const control = {
      setLogLevel: (level: LogLevel) => levels.push(level),
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
    const order = '{"command":"restart","app":"a.*","transaction":7}'
    expect(await act('bridge rollout', order)).toEqual({ transaction: '7', app: 'a.*' })
    expect(await act('bridge rollout-cancel', '{"transaction":"7"}')).toEqual({ transaction: '7' })
    expect(() => act('bridge rollout', '{"command":"restart","app":"a"}')).toThrow('transaction: expected')
    expect(() => act('bridge rollout', '{"command":"uninstall","app":"a","transaction":1}')).toThrow('command: ')
    const audited = COMMANDS.filter((one) => one.target === 'bridge' && one.audited).map(({ name }) => name)
    expect(audited).toEqual(['log-level', 'rollout', 'rollout-cancel'])
  })
})
