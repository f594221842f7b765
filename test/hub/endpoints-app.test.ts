import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { type EndpointCall, readEndpoint } from '../../src/hub/endpoints.ts'
import { Process } from '../support/process.ts'
import { PROGRAM } from '../support/program.ts'
import { until } from '../support/until.ts'
import { known, test } from './support.ts'

const HUE = 'com.athom.hue'
const FOLDER = fileURLToPath(new URL(`../../config/demo/apps/${HUE}`, import.meta.url))

test('an app answers a call through the hub, and its refusal is passed on', { timeout: 60_000 }, async ({ hold }) => {
  const options = '--no-rate-limit --port 0 --api-key key=hub.app --app'.split(' ')
  const args = ['emulate', ...options, FOLDER]
  await using emulated = new Process(process.execPath, [PROGRAM, ...args])
  const url = (await emulated.untilLine('listening')).replace(/.* /, '')
  const held = hold(url)
  await until('the app', () => known(held, HUE)?.state === 'running')
  const call = (path: string, more: Partial<EndpointCall> = {}) =>
    held.hub.callEndpoint(readEndpoint({ section: 'app', item: HUE, method: 'GET', path, ...more }))
  expect(await call('/lights/kitchen')).toEqual({ on: true, dim: 0.8 })
  expect(await call('/lights/kitchen', { method: 'PUT', body: { on: false } })).toMatchObject({ on: false })
  expect(await call('/lights')).toMatchObject({ kitchen: { on: false }, hall: { on: false } })
  await expect(call('/lights/cellar')).rejects.toMatchObject({ code: 'unsupported', status: 404 })
  await expect(call('/lights', { item: 'no.such.app' })).rejects.toMatchObject({ code: 'unknown_app' })
  // A refusal by an app proves nothing about the hub.
  expect(held.hub.status.online).toBe(true)
})
