import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import pino from 'pino'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { AppSeed } from '../../src/emulator/hub.ts'
import { EmulatedStore, type StoreApp } from '../../src/emulator/public-store.ts'
import { Store } from '../../src/hub/store.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/until.ts'
import { emulate, hold, listed } from './support.ts'

const HUE = 'com.athom.hue'
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
/** The store's time limit for a request. A wait of this length in `clock.waits` means that a request is in flight. */
const TIMEOUT = 15_000

const installed = (more: Partial<AppSeed> = {}): AppSeed => ({ id: HUE, version: '1.0.0', update: '1.2.0', ...more })
const offered: StoreApp = { id: HUE, live: '1.2.0', changelog: { nl: 'Meer', en: 'Shines brighter' } }

/** Starts a hub that reports updates without their versions, so that the versions come from the store. */
async function open(seeds: readonly AppSeed[], offers: readonly StoreApp[], { isOn = true } = {}) {
  const emulated = await emulate({ flavour: 'newer', apps: seeds })
  const watched = hold(emulated.url, { realtime: false })
  await listed(watched)
  const shop = await EmulatedStore.start(offers)
  onTestFinished(() => shop[Symbol.asyncDispose]())
  const clock = new FakeClock()
  const switches = { isOn, isActive: true }
  const lines: string[] = []
  const store = new Store({
    url: shop.url,
    isOn: () => switches.isOn,
    isActive: () => switches.isActive,
    clock,
    log: pino({}, { write: (line: string) => lines.push(line) }),
    random: () => 0,
  })
  onTestFinished(() => store[Symbol.asyncDispose]())
  const told: string[] = []
  store.follow('home', watched.hub.apps, (id) => told.push(id))
  store.reconfigured()
  let seen = 0
  let dueAt = Number.POSITIVE_INFINITY
  const pass = async (ms: number) => {
    const end = clock.elapsed() + ms
    for (;;) {
      if (clock.waits.length !== seen) dueAt = clock.elapsed() + (clock.waits.at(-1) ?? 0)
      seen = clock.waits.length
      if (dueAt > end || clock.pending === 0) break
      await clock.advance(dueAt - clock.elapsed())
      await until('the answer', () => clock.waits.at(-1) !== TIMEOUT)
    }
    await clock.advance(end - clock.elapsed())
  }
  const { apps } = watched.hub
  return {
    ...{ emulated, watched, shop, clock, store, switches, told, lines, pass },
    app: (id = HUE) => apps.all.get(id),
    changelog: (id = HUE) => apps.releases.all.get(id)?.release.changelog,
    paths: () => shop.requests.map(({ url }) => url),
  }
}

describe('data that a hub does not report comes from the store', () => {
  test('with the newest version, its step and its changelog', async () => {
    const { pass, app, changelog, told, paths } = await open([installed()], [offered])
    expect(app()).toMatchObject({ update_available: true, latest_version: null, update_severity: null })
    await pass(MINUTE)
    expect(app()).toMatchObject({ update_available: true, latest_version: '1.2.0', update_severity: 'minor' })
    expect(changelog()).toBe('Shines brighter')
    expect(told).toEqual([HUE])
    expect(paths()).toEqual([`/api/v1/app/${HUE}`])
  })

  test('and the version stays while the list is read again, and follows the hub when it is installed', async () => {
    const { emulated, watched, pass, app } = await open([installed()], [offered])
    await pass(MINUTE)
    const changes: string[][] = []
    watched.hub.apps.subscribe((news) => changes.push(news.changes.map(({ id }) => id)))
    await watched.hub.apps.refresh()
    expect(changes).toEqual([[]])
    emulated.install(HUE)
    await watched.hub.apps.refresh()
    await watched.hub.apps.readApp(HUE)
    expect(app()).toMatchObject({ version: '1.2.0', latest_version: null, update_severity: 'none' })
  })

  test('without an event for the first answer, and with one for a newer version in a later answer', async () => {
    const { watched, pass, shop } = await open([installed()], [offered])
    const heard: [string | null | undefined, boolean][] = []
    watched.hub.apps.subscribe(({ changes, silent }) => {
      for (const { after } of changes) heard.push([after?.latest_version, silent])
    })
    await pass(MINUTE)
    shop.apps.set(HUE, { ...offered, live: '2.0.0' })
    await pass(DAY + MINUTE)
    expect(heard).toEqual([
      ['1.2.0', true],
      ['2.0.0', false],
    ])
  })

  test('unless the hub reports a version, even if the store has a newer one', async () => {
    const { watched, pass, app, shop } = await open([installed({ record: { updateAvailable: '1.2.0' } })], [offered])
    await pass(MINUTE)
    shop.apps.set(HUE, { ...offered, live: '1.3.0' })
    await pass(DAY + MINUTE)
    expect(app()?.latest_version).toBe('1.2.0')
    await watched.hub.apps.refresh()
    expect(app()?.latest_version).toBe('1.2.0')
  })

  test('unless the hub reports that there is no update', async () => {
    const { emulated, watched, pass, app } = await open([installed({ update: undefined })], [offered])
    await pass(MINUTE)
    expect(app()).toMatchObject({ update_available: false, latest_version: null, update_severity: 'none' })
    emulated.change(HUE, { updateAvailable: true })
    await watched.hub.apps.refresh()
    expect(app()).toMatchObject({ update_available: true, latest_version: '1.2.0' })
  })

  test.each([
    ['live', { live: '1.2.0', test: '1.3.0' }, '1.2.0'],
    ['test', { live: '1.2.0', test: '1.3.0' }, '1.3.0'],
    ['test', { live: '1.4.0', test: '1.3.0' }, '1.4.0'],
    ['test', { live: '1.2.0' }, '1.2.0'],
  ])('an app of the channel %s has of %o version %s', async (channel, versions, version) => {
    const { pass, app } = await open([installed({ channel })], [{ id: HUE, ...versions }])
    await pass(MINUTE)
    expect(app()?.latest_version).toBe(version)
  })

  test('another request reads a changelog that is not in the answer for the app, only if there is an update', async () => {
    const changelogs = { '1.2.0': { en: 'New lamps' }, '1.1.0': { en: 'Old lamps' } }
    const current = { id: 'com.example.current', version: '2.0.0' }
    const { pass, changelog, paths } = await open(
      [installed(), current],
      [
        { id: HUE, live: '1.2.0', changelogs },
        { id: current.id, live: '2.0.0', changelogs },
      ],
    )
    await pass(MINUTE)
    expect(changelog()).toBe('New lamps')
    expect(paths().toSorted()).toEqual(
      [`/api/v1/app/${HUE}`, `/api/v1/app/${HUE}/changelog`, `/api/v1/app/${current.id}`].toSorted(),
    )
  })

  test('the changelog is a line of plain text, no longer than Home Assistant accepts', async () => {
    const en = `<b>New</b>\n\n![x](http://a/b.png) ${'💡'.repeat(300)}`
    const { pass, changelog } = await open([installed()], [{ ...offered, changelog: { en } }])
    await pass(MINUTE)
    expect(changelog()).toMatch(/^‹b›New‹\/b› !\(x\)\(http:\/\/a\/b\.png\) 💡+$/u)
    expect(changelog()?.length).toBeLessThanOrEqual(255)
    expect(changelog()?.length).toBeGreaterThan(253)
  })
})

describe('the store gets few requests', () => {
  test('none while it is off', async () => {
    const { pass, paths, clock } = await open([installed()], [offered], { isOn: false })
    await pass(2 * DAY)
    expect(paths()).toEqual([])
    expect(clock.waits).toEqual([])
  })

  test('with nothing but the id of the app', async () => {
    const { pass, shop } = await open([installed()], [offered])
    await pass(MINUTE)
    const [request] = shop.requests
    expect(request).toMatchObject({ method: 'GET', url: `/api/v1/app/${HUE}` })
    expect(Object.keys(request?.headers ?? {}).toSorted()).toEqual(['accept-encoding', 'connection', 'host'])
  })

  test('once a day for each app, one after the other, two seconds apart', async () => {
    const other = { id: 'com.example.other', version: '1.0.0' }
    const { pass, paths, clock } = await open([installed(), other], [offered, { id: other.id, live: '1.0.0' }])
    await pass(DAY)
    expect(paths()).toHaveLength(2)
    const [, second] = clock.waits.flatMap((ms, at) => (ms === TIMEOUT ? [clock.waits[at - 1]] : []))
    expect(second).toBe(2000)
    await pass(HOUR)
    expect(paths()).toHaveLength(4)
  })

  test('once for an app of two hubs', async () => {
    const { watched, emulated, store, pass, paths } = await open([installed()], [offered])
    const twin = hold(emulated.url, { realtime: false })
    await listed(twin)
    store.follow('away', twin.hub.apps, () => {})
    await pass(HOUR)
    expect(paths()).toHaveLength(1)
    for (const { hub } of [watched, twin]) expect(hub.apps.all.get(HUE)?.latest_version).toBe('1.2.0')
  })

  test.each<[what: string, seed: Partial<AppSeed>]>([
    ['that is under development', { origin: 'devkit_run' }],
    ['that was installed by its developer', { origin: 'devkit_install' }],
    ['of an unknown origin', { origin: 'unknown' }],
    ['of an unknown channel', { channel: 'nightly' }],
    ['with an id that leaves the path', { id: '..' }],
    ['with an id that no app of the store has', { id: 'a b?c#d' }],
  ])('none for an app %s', async (_, seed) => {
    const { pass, paths } = await open([installed(seed)], [offered])
    await pass(DAY)
    expect(paths()).toEqual([])
  })

  test('only from the active process', async () => {
    const { pass, paths, switches } = await open([installed()], [offered])
    switches.isActive = false
    await pass(HOUR)
    expect(paths()).toEqual([])
    switches.isActive = true
    await pass(2 * MINUTE)
    expect(paths()).toHaveLength(1)
  })

  test('none after it is switched off, and its data is forgotten', async () => {
    const { pass, store, switches, app, paths, told } = await open([installed()], [offered])
    await pass(MINUTE)
    switches.isOn = false
    store.reconfigured()
    expect(app()).toMatchObject({ latest_version: null, update_severity: null })
    expect(told).toEqual([HUE, HUE])
    await pass(2 * DAY)
    expect(paths()).toHaveLength(1)
  })

  test('for an app that it does not have, again on the next day', async () => {
    const { pass, app, paths } = await open([installed()], [])
    await pass(DAY)
    expect(app()?.latest_version).toBeNull()
    expect(paths()).toHaveLength(1)
    await pass(HOUR)
    expect(paths()).toHaveLength(2)
  })
})

const answer =
  (status: number, body: unknown = '', headers = {}): RequestListener =>
  (_, response) =>
    response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body))
const good = { id: HUE, liveVersion: '1.2.0', liveBuild: { changelog: 'Fine' } }

describe('a failure leaves the newest version unknown', () => {
  test.each<[what: string, fault: RequestListener]>([
    ['500', answer(500, good)],
    ['503', answer(503, good)],
    ['401', answer(401, good)],
    ['204', answer(204)],
    ['a page', answer(200, '<!doctype html><title>Log in</title>', { 'content-type': 'text/html' })],
    ['half of the JSON', answer(200, JSON.stringify(good).slice(0, -9))],
    ['a list', answer(200, [good])],
    ['null', answer(200, 'null')],
    ['another app', answer(200, { ...good, id: 'com.example.other' })],
    ['no id', answer(200, { liveVersion: '1.2.0' })],
    ['JSON of many levels', answer(200, `{"id":"${HUE}","liveVersion":${'['.repeat(90_000)}${']'.repeat(90_000)}}`)],
    ['more than a megabyte', answer(200, { ...good, more: 'x'.repeat(2 * 1024 * 1024) })],
    ['a broken connection', (request: IncomingMessage) => request.socket.destroy()],
    [
      'a cut body',
      (_, response) => void response.writeHead(200, { 'content-length': '999' }).write('{', () => response.destroy()),
    ],
    ['a version that is none', answer(200, { ...good, liveVersion: '1.2.0; rm -rf /' })],
    ['a very long version', answer(200, { ...good, liveVersion: `1.2.0-${'9'.repeat(5000)}` })],
    ['a version of another type', answer(200, { ...good, liveVersion: { major: 2 } })],
    ['a lower version', answer(200, { ...good, liveVersion: '0.9.0' })],
    ['the installed version', answer(200, { ...good, liveVersion: '1.0.0' })],
  ])('%s', async (_, fault) => {
    const { shop, pass, app, paths } = await open([installed()], [])
    shop.fault = fault
    await pass(MINUTE)
    expect(paths().length).toBeGreaterThan(0)
    expect(app()).toMatchObject({ update_available: true, latest_version: null })
    expect(app()?.update_severity ?? 'none').toBe('none')
  })

  test('a changelog of another type is left out, and the version is used', async () => {
    for (const changelog of [7, null, {}, [], { en: 7 }, { en: ' ' }]) {
      const { shop, pass, app, changelog: shown } = await open([installed()], [])
      shop.fault = answer(200, { ...good, liveBuild: { changelog } })
      await pass(MINUTE)
      expect(app()?.latest_version).toBe('1.2.0')
      expect(shown()).toBeNull()
    }
  })

  test('a redirect is not followed', async () => {
    const elsewhere = await EmulatedStore.start([offered])
    onTestFinished(() => elsewhere[Symbol.asyncDispose]())
    const { shop, pass, app } = await open([installed()], [])
    shop.fault = answer(302, '', { location: `${elsewhere.url}/app/${HUE}` })
    await pass(MINUTE)
    expect(elsewhere.requests).toEqual([])
    expect(app()?.latest_version).toBeNull()
  })

  test('the request is aborted after fifteen seconds without an answer', async () => {
    const { shop, clock, app, lines } = await open([installed()], [])
    const held: ServerResponse[] = []
    shop.fault = (_, response) => void held.push(response)
    await clock.advance(6_000)
    await until('the request', () => held.length === 1)
    await clock.advance(TIMEOUT)
    await until('the line', () => lines.some((line) => line.includes('"code":"no_answer"')))
    expect(app()?.latest_version).toBeNull()
  })

  test('an app is tried again after an hour, the other apps first, and the failure is logged once', async () => {
    const other = { id: 'com.example.other', version: '1.0.0' }
    const { shop, pass, paths, lines } = await open([installed(), other], [offered, { id: other.id, live: '1.0.0' }])
    shop.fault = answer(503)
    await pass(HOUR)
    expect(paths()).toEqual([`/api/v1/app/${HUE}`])
    await pass(2 * MINUTE)
    expect(paths().at(-1)).toBe(`/api/v1/app/${other.id}`)
    expect(paths()).toHaveLength(2)
    expect(lines.filter((line) => line.includes('failed'))).toHaveLength(1)
    shop.fault = undefined
    await pass(HOUR + MINUTE)
    expect(paths()).toHaveLength(4)
  })

  test.each([429, 503])('%d with Retry-After ends all requests for that long', async (status) => {
    const other = { id: 'com.example.other', version: '1.0.0' }
    const { shop, pass, paths } = await open([installed(), other], [])
    shop.fault = answer(status, '', { 'retry-after': '14400' })
    await pass(4 * HOUR)
    expect(paths()).toHaveLength(1)
    await pass(2 * MINUTE)
    expect(paths()).toHaveLength(2)
  })

  test('an invalid answer delays no other app', async () => {
    const other = { id: 'com.example.other', version: '1.0.0', update: '1.1.0' }
    const { shop, pass, app } = await open([installed(), other], [])
    shop.fault = (request, response) =>
      answer(200, request.url?.endsWith(HUE) ? [] : { id: other.id, liveVersion: '1.1.0' })(request, response)
    await pass(MINUTE)
    expect(app(other.id)?.latest_version).toBe('1.1.0')
  })

  test('data from the store stays valid for two days while the store fails, then it is unknown', async () => {
    const { shop, pass, app } = await open([installed()], [offered])
    await pass(MINUTE)
    shop.fault = answer(500)
    await pass(DAY + HOUR)
    expect(app()?.latest_version).toBe('1.2.0')
    await pass(DAY + 2 * HOUR)
    expect(app()).toMatchObject({ latest_version: null, update_severity: null })
  })
})

describe('data that an earlier run has published', () => {
  const published = JSON.stringify({ latest_version: '1.2.0', release_summary: 'Shines brighter' })

  test('is used until the store has answered, also before the hub has listed its apps', async () => {
    const { store, app, changelog, shop, pass } = await open([installed()], [{ ...offered, live: '1.3.0' }])
    store.recall('home', HUE, published)
    store.recall('home', HUE, JSON.stringify({ latest_version: '1.2.0' }))
    expect(app()?.latest_version).toBe('1.2.0')
    expect(changelog()).toBe('Shines brighter')
    const late = await emulate({ flavour: 'newer', apps: [installed()] })
    const watched = hold(late.url, { realtime: false })
    store.follow('late', watched.hub.apps, () => {})
    store.recall('late', HUE, published)
    const first: unknown[] = []
    watched.hub.apps.subscribe(({ changes }) => first.push(...changes.map(({ after }) => after?.latest_version)))
    await listed(watched)
    expect(first).toEqual(['1.2.0'])
    shop.fault = answer(500)
    await pass(MINUTE)
    expect(app()?.latest_version).toBe('1.2.0')
    shop.fault = undefined
    await pass(2 * HOUR)
    expect(app()?.latest_version).toBe('1.3.0')
    store.recall('home', HUE, published)
    expect(app()?.latest_version).toBe('1.3.0')
  })

  test.each(['', '[', '7', '{}', '{"latest_version":"newer version, found 2026-11-23 13:05 UTC"}'])(
    'is ignored if it names no version: %s',
    async (payload) => {
      const { store, app } = await open([installed()], [offered])
      store.recall('home', HUE, payload)
      store.recall('nowhere', HUE, published)
      expect(app()?.latest_version).toBeNull()
    },
  )
})
