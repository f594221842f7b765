/** Checked only by the compiler: types of the SDK, under the name by which apps import it. */

import type { Hub, Settings, Start } from 'hub2mqtt/sdk'
import { startApp, type TestApp } from 'hub2mqtt/sdk/testing'
import { expectTypeOf } from 'vitest'

export const start: Start = async ({ app, hub, log }) => {
  expectTypeOf(app.id).toBeString()
  app.api.put('/lights/:light', ({ params, query, body }) => {
    expectTypeOf(params['light']).toEqualTypeOf<string | undefined>()
    expectTypeOf(query['a']).toEqualTypeOf<string | undefined>()
    expectTypeOf(body).toBeUnknown()
  })
  expectTypeOf(hub.manager('settings')).toEqualTypeOf<Settings>()
  const settings = hub.manager('settings')
  expectTypeOf(await settings.all()).toEqualTypeOf<Record<string, unknown>>()
  settings.on('change', (name) => log(name))
  // @ts-expect-error settings do not have this event
  settings.on('changed', () => {})
  // @ts-expect-error apps do not have this event
  app.on('start', () => {})
  await hub.manager('apps').on('app.update', (payload) => expectTypeOf(payload).toBeUnknown())
  expectTypeOf(await hub.manager('apps')['getApp']?.({ id: app.id })).toBeUnknown()
  expectTypeOf<Hub['speak']>().parameters.toEqualTypeOf<[text: string]>()
  await hub.app('com.example.other').put('/lights/hall', { body: { on: true } })
}

export async function tested(): Promise<void> {
  const app = await startApp(start, { managers: { apps: { getApp: ({ id }) => id } } })
  expectTypeOf(app).toEqualTypeOf<TestApp>()
  expectTypeOf(await app.get('/')).toBeUnknown()
  expectTypeOf(app.spoken).toEqualTypeOf<readonly string[]>()
  // @ts-expect-error the option is `settings`, not `setting`
  await startApp(start, { setting: {} })
}
