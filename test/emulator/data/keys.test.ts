import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { keysOf } from '../../../src/emulator/data/keys.ts'
import { openHubData } from '../../../src/emulator/data/state.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { until } from '../../support/until.ts'
import { ask, events, HUE, hubOf, sessionOf, subscribed } from '../support.ts'
import { folder, opened } from './support.ts'

describe('the keys of a data folder', () => {
  it('survive a restart, and are nowhere in the folder in plain text', async () => {
    const path = join(folder(), 'data')
    const key = await (async () => {
      await using data = await openHubData({ folder: path })
      return data.keys.create(['hub']).key
    })()
    const { keys } = await opened({ folder: path })
    expect(keys.scopesOf(key)).toBeDefined()
    const files = readdirSync(path).map((name) => readFileSync(join(path, name)))
    expect(files.filter((bytes) => bytes.includes(key) || bytes.includes(Buffer.from(key, 'base64url')))).toEqual([])
  })

  it('are listed with id, date, scopes and name, oldest first', () => {
    using keys = keysOf(join(folder(), 'data'), { make: true })
    const ids = [keys.create(['homey.app', 'hub.speech'], 'the tablet').id, keys.create(['hub'], '').id]
    expect(keys.list()).toEqual([
      expect.stringMatching(
        new RegExp(`^${ids[0]}  \\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z  hub\\.app,hub\\.speech  the tablet$`),
      ),
      expect.stringMatching(new RegExp(`^${ids[1]}  \\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z  hub$`)),
    ])
  })

  it('are refused with unknown scopes, long names, unknown ids, and without a hub', () => {
    const path = join(folder(), 'data')
    expect(() => keysOf(path)).toThrow(`${path}: contains no hub`)
    using keys = keysOf(path, { make: true })
    expect(() => keys.create(['hub.everything'], '')).toThrow('--scope: unknown scope "hub.everything"')
    expect(() => keys.create(['hub'], 'x'.repeat(101))).toThrow('--name: at most 100 characters')
    expect(() => keys.revoke('00000000')).toThrow('no key has this id')
    expect(keys.list()).toEqual([])
  })
})

describe('a hub with the keys of a data folder', () => {
  it('accepts them in addition to those of its options, and answers 401 and 403 like real hubs', async () => {
    const { keys, folder: path } = await opened({ folder: join(folder(), 'data') })
    const hub = await hubOf({ storedKeys: (key) => keys.scopesOf(key) })
    using elsewhere = keysOf(path)
    const { id, key } = elsewhere.create(['hub.app.readonly'], '')
    const statuses = async () => [
      (await ask(hub, 'GET /apps/app', { key })).status,
      (await ask(hub, `POST /apps/app/${HUE}/restart`, { key })).status,
      (await ask(hub, 'GET /apps/app')).status,
      (await ask(hub, 'GET /apps/app', { key: null })).status,
      (await ask(hub, 'GET /system/ping', { key: null })).status,
    ]
    expect(await statuses()).toEqual([200, 403, 200, 401, 200])
    expect((await ask(hub, 'GET /apps/app', { key: key.slice(1) })).status).toBe(401)
    elsewhere.revoke(id)
    expect(await statuses()).toEqual([401, 401, 200, 401, 200])
  })

  it('ends the sessions of a key within a second of its revocation, and no others', async () => {
    const { keys, folder: path } = await opened({ folder: join(folder(), 'data') })
    const clock = new FakeClock()
    const hub = await hubOf({ storedKeys: (key) => keys.scopesOf(key), clock })
    using elsewhere = keysOf(path)
    const { id, key } = elsewhere.create(['hub.app.readonly'], '')
    const [session, other] = [await subscribed(hub, key), await subscribed(hub)]
    elsewhere.revoke(id)
    await clock.advance(1000)
    await until('the session to end', () => session.gone.length > 0)
    expect(await events(hub, other)).toEqual([])
    expect(other.gone).toEqual([])
    await expect(sessionOf(hub, key)).rejects.toMatchObject({ statusCode: 401 })
  })
})
