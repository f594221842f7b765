import { expect, test } from 'vitest'
import type { AppRecord, RequestRecord } from '../../src/emulator/hub.ts'
import { Returns } from './returns.ts'

const ID = 'org.visitor1'

function returnsOn(requests: readonly RequestRecord[] = [], apps = new Map<string, AppRecord>()): Returns {
  return new Returns({ apps, requests })
}

test('an app that was installed once may be published once', () => {
  const returns = returnsOn()
  returns.created(ID)
  expect([true, true, false, true].map((isThere) => returns.take(ID, isThere))).toEqual([false, false, false, true])
})

test('an app that was installed twice may be published again, however late', () => {
  const returns = returnsOn()
  returns.created(ID)
  returns.created(ID)
  expect([true, false, true, false, true].map((isThere) => returns.take(ID, isThere))).toEqual([
    ...[false, false, false, false],
    true,
  ])
})

test('an app that a command installs may be published again', () => {
  const installed: RequestRecord = {
    ...{ at: 0, via: 'rest', method: 'POST', path: '/store', operation: 'installFromAppStore' },
    ...{ body: { id: ID }, status: 200, executed: true },
  }
  const returns = returnsOn([installed])
  expect([false, true, false, true].map((isThere) => returns.take(ID, isThere))).toEqual([false, false, false, true])
})

test('retained messages from before a restart of the broker are not judged, later messages are', () => {
  const returns = returnsOn()
  returns.created(ID)
  returns.take(ID, false)
  returns.forgetPublished()
  expect([true, false, true].map((isThere) => returns.take(ID, isThere))).toEqual([false, false, true])
})

test('an app that the hub never had does not count as published again', () => {
  const returns = returnsOn()
  expect([true, false, true].map((isThere) => returns.take(ID, isThere))).toEqual([false, false, false])
})
