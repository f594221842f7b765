/** Checked only by the compiler: calls and rows with wrong types must not compile. */
import { expectTypeOf } from 'vitest'
import type { Json } from '../../src/base/json.ts'
import type { Command, HubCommand } from '../../src/contract/command.ts'
import type { AppPatch } from '../../src/hub/app.ts'
import type { HubClient } from '../../src/hub/client.ts'
import { OPERATIONS, type OperationName, type Parameters, type Result } from '../../src/hub/operations.ts'

declare const client: HubClient

expectTypeOf<Parameters<'restartApp'>>().toExtend<{ readonly id: string }>()
expectTypeOf<Parameters<'getAppSetting'>>().toExtend<{ readonly id: string; readonly name: string }>()
expectTypeOf<Result<'getApps'>>().toEqualTypeOf<Map<string, AppPatch | undefined>>()
expectTypeOf<Result<'restartApp'>>().toEqualTypeOf<Json>()
expectTypeOf<Result<'getAppStd'>>().toEqualTypeOf<Json>()
expectTypeOf<Parameters<'uninstallApp'>>().toExtend<{
  readonly id: string
  readonly purgeSettings?: boolean | undefined
}>()

declare const anyName: OperationName
expectTypeOf(OPERATIONS[anyName].scope).toEqualTypeOf<string | undefined>()
expectTypeOf(OPERATIONS[anyName].optional).toEqualTypeOf<true | undefined>()
expectTypeOf(OPERATIONS[anyName].otherPath).toEqualTypeOf<string | undefined>()

export const calls = [
  client.call('restartApp', { id: 'a' }),
  client.call('setAppSetting', { id: 'a', name: 'n', value: [1, null] }),
  // @ts-expect-error the path needs an :id
  client.call('restartApp', {}),
  // @ts-expect-error the path also needs a :name
  client.call('getAppSetting', { id: 'a' }),
  // @ts-expect-error a function is not a JSON value
  client.call('setAppSetting', { id: 'a', name: 'n', value: () => 1 }),
  // @ts-expect-error the body needs the app's id
  client.call('installFromAppStore', { id: 'a' }),
  // @ts-expect-error there is no such operation
  client.call('danceApp', { id: 'a' }),
]

// @ts-expect-error a command for a hub needs an operation
export const noOperation: HubCommand = { target: 'app', name: 'x', payload: null, write: true, doc: '', run: null }
// @ts-expect-error a command for the bridge has no operation
export const bridgeOperation: Command = { target: 'bridge', name: 'x', operation: 'getApp', doc: '', act: () => {} }
