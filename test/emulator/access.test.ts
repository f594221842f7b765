import { describe, expect } from 'vitest'
import { grants, normaliseScope } from '../../src/emulator/scopes.ts'
import { until } from '../support/until.ts'
import { acknowledged, ask, sessionOf, test } from './support.ts'

describe('keys', () => {
  test('forgets a revoked key and ends its session', async ({ hub, session }) => {
    hub.setKeys({})
    expect((await ask(hub, 'GET /apps/app')).status).toBe(401)
    await until('the session to end', () => session.gone.length > 0)
    await expect(sessionOf(hub)).rejects.toMatchObject({ statusCode: 401 })
  })

  test('restricts a key while it is in use', async ({ hub, session }) => {
    hub.setKeys({ secret: ['homey.speech'] })
    expect((await ask(hub, 'GET /apps/app')).status).toBe(403)
    expect((await acknowledged(session.api, 'subscribe', 'homey:manager:apps'))[0]).toMatchObject({ statusCode: 403 })
  })
})

describe('scopes', () => {
  test.each([
    ['homey.app', 'homey.app.control', true],
    ['homey.app', 'homey.app', true],
    ['homey', 'homey.system', true],
    ['homey.app.readonly', 'homey.app', false],
    ['homey.application', 'homey.app', false],
    ['homey.ap', 'homey.app', false],
  ] as const)('%s for %s: %s', (scope, wanted, granted) => {
    expect(grants([scope], wanted)).toBe(granted)
  })

  test('may begin with hub instead of homey', () => {
    expect(['hub', 'hub.app', 'hubble.app', 'homey.hub'].map(normaliseScope)).toEqual([
      'homey',
      'homey.app',
      'hubble.app',
      'homey.hub',
    ])
  })
})
