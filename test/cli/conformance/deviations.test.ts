import { describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import { reportText } from '../../../src/cli/conformance/report.ts'
import { type GatewayRequest, HttpGateway, type Reply } from '../../support/http-gateway.ts'
import { DEVIATIONS, ODD, type Plant } from './plants.ts'
import { APP, closeAtEnd, emulate, found, hasty, KEY, NOTHING, open, outcome, reportOn, said } from './support.ts'

closeAtEnd()

async function plant({ hub: options, misbehave, onTheWay }: Plant) {
  const hub = await emulate({ flavour: 'older', ...options })
  const gateway = await HttpGateway.to(hub.port)
  open.use(gateway)
  misbehave?.(hub)
  onTheWay?.(gateway)
  return { hub, url: `http://127.0.0.1:${gateway.port}` }
}

/** 9.9.9 is higher than the app's version, so the examination skips the downgrade, which would take time. */
const all = { app: APP, writes: true, limits: true, downgrade: '9.9.9' }

// These tests run in parallel, because an examination mostly waits.
test.concurrent.for(Object.entries(DEVIATIONS))(
  'the deviation that %s is found, without other findings',
  async ([, [one, findings]]) => {
    const { url } = await plant(one)
    const report = await reportOn(url, all)
    expect(said(report)).toEqual({ ...NOTHING, ...findings })
    const { left = [] } = findings
    expect(report.problems).toEqual(left.length === 0 ? [] : [`the app was not restored: ${left.join(', ')}`])
  },
)

test.concurrent.for(Object.entries(ODD))('a hub that %s has no findings', async ([, one]) => {
  const { url } = await plant(one)
  const report = await reportOn(url, all)
  expect(said(report)).toEqual(NOTHING)
  expect(report.problems).toEqual([])
})

test.concurrent('a list of apps that is keyed by something else than their ids is found', async () => {
  const change = (answer: Reply): Reply => ({ ...answer, text: answer.text.replace(`"${APP}":`, '"other":') })
  const isList = ({ upgrade, path }: GatewayRequest) => !upgrade && path.endsWith('/apps/app')
  const { url } = await plant({
    onTheWay: (gateway) => gateway.rule((asked) => (isList(asked) ? { change } : undefined)),
  })
  expect(said(await reportOn(url))).toEqual({ ...NOTHING, differs: ['apps-by-id'], operations: ['getApps'] })
})

test.concurrent('the events of a hub are named without those that do not apply', async () => {
  const { url } = await plant({})
  const report = await reportOn(url, all)
  expect(found(report, 'events')?.found).toBe('after updateApp, restartApp, disableApp, enableApp')
  expect(found(report, 'setting-gone')?.found).toBe('it does not')
})

test.concurrent('a hub that limits requests has no findings', async () => {
  const { url } = await plant({ hub: { rateLimit: true } })
  expect(said(await reportOn(url, { ...all, limits: false, clock: hasty(50) }))).toEqual(NOTHING)
})

test.concurrent('a hub that needs longer for an install than for other requests has no findings', async () => {
  const { url } = await plant({
    misbehave: (hub) => hub.behave('slow-headers', { operation: 'installFromAppStore', ms: 3_000 }),
  })
  const clock = hasty()
  const patience: Clock = {
    ...clock,
    after: (ms, task) => (ms === 15_000 ? systemClock.after(2_000, task) : clock.after(ms, task)),
  }
  const report = await reportOn(url, { ...all, limits: false, downgrade: '1.0.0', clock: patience })
  expect(said(report)).toEqual(NOTHING)
  expect(outcome(report, 'installFromAppStore')).toBe('ok')
  expect(report.problems).toEqual([])
})

test.concurrent.for([1, 2, 3, 5, 7, 9, 11, 13, 14, 15, 17])(
  'a hub that reboots at request %i has no findings',
  async (at) => {
    const { hub, url } = await plant({
      onTheWay: (gateway) => {
        let requests = 0
        gateway.rule(() => {
          requests += 1
          if (requests !== at) return undefined
          void hub.reboot({ downMs: 300 })
          return 'cut'
        })
      },
    })
    expect(said(await reportOn(url, { limits: true, clock: hasty(50) }))).toEqual(NOTHING)
  },
)

test.concurrent.for([
  ['is disabled', { enabled: false, settings: {} }],
  ['has crashed', { crashed: 'Error: it fell over', settings: {} }],
  ['has settings', { settings: { other: 1 } }],
] as const)('an app that %s is examined and restored', async ([, seed]) => {
  const hub = await emulate({ flavour: 'older', apps: [{ id: APP, version: '2.1.0', ...seed }] })
  const before = hub.apps.get(APP)
  const report = await reportOn(hub.url, all)
  expect(said(report)).toEqual(NOTHING)
  expect(found(report, 'disable')?.result).toBe('agrees')
  expect(hub.apps.get(APP)?.enabled).toBe(before?.enabled)
  expect(hub.settings(APP)).toEqual(seed.settings)
})

describe.concurrent('a key', () => {
  test.for([
    [['homey.app.readonly', 'homey.speech.readonly']],
    [['homey.app.readonly']],
    [['homey.app.readonly', 'homey.app.control']],
    [['homey.speech']],
    [['homey.system']],
    [[]],
  ])('that may only %j is not a fault of the hub', async ([scopes]) => {
    const hub = await emulate({ flavour: 'older', keys: { [KEY]: scopes ?? [] } })
    const before = hub.apps.get(APP)
    const report = await reportOn(hub.url, all)
    expect(said(report)).toEqual(NOTHING)
    expect(hub.apps.get(APP)).toEqual(before)
    expect(hub.settings(APP)).toEqual({ gate_code: '4711-gate' })
  })

  test('without speech leaves open whether there is a list of voices', async () => {
    const hub = await emulate({ flavour: 'older', keys: { [KEY]: ['homey.app'] } })
    const report = await reportOn(hub.url)
    expect(found(report, 'voices')).toMatchObject({ result: 'unknown', found: 'no permission: 403 missing_scopes' })
  })

  test('that is unknown is no evidence about the hub', async () => {
    const hub = await emulate({ flavour: 'older' })
    const report = await reportOn(hub.url, { ...all, key: 'another-key' })
    expect(said(report)).toEqual(NOTHING)
    expect(report.usable).toBe(false)
    expect(report.problems).toEqual([
      'the key may not list the apps: 401 unauthorized',
      'the app that may be changed could not be read (401 unauthorized): nothing was changed',
    ])
  })
})

describe.concurrent('the kind of a hub', () => {
  test.for([
    ['8.1.6', 'older'],
    ['10.0.0', 'newer'],
    ['9.999', 'older'],
  ] as const)('follows from firmware %s, also if a missing method is refused with 500', async ([version, kind]) => {
    const record = { exitCount: undefined, crashedCount: 0 }
    const hub = await emulate({ flavour: 'older', version, apps: [{ id: APP, record }] })
    hub.behave('missing-api-method', { operation: 'getVoices' })
    const { hub: seen } = await reportOn(hub.url)
    expect(seen).toMatchObject({ kind })
    expect(seen?.because).not.toContain('no speech output')
  })

  test('is older without an identity, if a missing method is refused with 500', async () => {
    const hub = await emulate({ flavour: 'older', apps: [] })
    hub.behave('no-identity')
    hub.behave('missing-api-method', { operation: 'getVoices' })
    expect((await reportOn(hub.url)).hub?.kind).toBe('older')
  })
})

describe.concurrent('the number of apps', () => {
  test('may be zero', async () => {
    const hub = await emulate({ flavour: 'older', apps: [] })
    const report = await reportOn(hub.url, { limits: true })
    expect(said(report)).toEqual(NOTHING)
    expect(report).toMatchObject({ usable: true, app: null, hub: { apps: 0 } })
    expect(report.operations.find(({ name }) => name === 'getAppLocales')?.untried).toBe('there is no app')
  })

  test('may be 300', async () => {
    const apps = Array.from({ length: 300 }, (_, at) => ({ id: `com.example.app${at}`, enabled: at > 150 }))
    const hub = await emulate({ flavour: 'older', apps })
    const report = await reportOn(hub.url, { app: 'com.example.app151', writes: true })
    expect(said(report)).toEqual(NOTHING)
    expect(report.hub?.apps).toBe(300)
  })

  test('may include an invalid entry', async () => {
    const change = (answer: Reply) => ({ ...answer, text: answer.text.replace('{', '{"ghost":null,') })
    const onTheWay = (gateway: HttpGateway) =>
      gateway.rule(({ path, headers, upgrade }) =>
        !upgrade && path.endsWith('/app') && headers.authorization?.includes(KEY) ? { change } : undefined,
      )
    const { url } = await plant({ onTheWay })
    const report = await reportOn(url)
    expect(report.usable).toBe(true)
    expect(said(report)).toEqual({ ...NOTHING, operations: ['getApps'] })
  })
})

describe.concurrent('an untested operation', () => {
  test('has a reason', async () => {
    const hub = await emulate({ flavour: 'older', apps: [{ id: APP }] })
    const report = await reportOn(hub.url)
    const reasons = new Map(report.operations.map(({ name, untried }) => [name, untried]))
    expect(reasons.get('getApps')).toBeNull()
    expect(reasons.get('getAppSetting')).toBe('no setting is known')
    expect(reasons.get('restartApp')).toBe('without --writes')
    expect(reasons.get('createBackup')).toBe('never done')
    expect(found(report, 'disable')).toMatchObject({ result: 'unknown', found: 'not tried: without --writes' })
    expect(found(report, 'rate-limit')?.found).toBe('not tried: without --limits')
    expect(reportText(report)).toContain('not tried: without --limits\n')
    expect(outcome(report, 'restartApp')).toBe('not_tried')
    for (const { name, untried, outcome: result } of report.operations)
      expect(untried === null, name).toBe(result !== 'not_tried')
    for (const { id, found: why } of report.expectations) if (why.startsWith('not tried')) expect(why, id).toMatch(/: /)
  })

  test('also has a reason if writes were requested', async () => {
    const hub = await emulate({ flavour: 'older', apps: [{ id: APP, version: '1.0.0' }] })
    hub.behave('refuse-handshake')
    const report = await reportOn(hub.url, { app: APP, writes: true })
    expect(found(report, 'downgrade')?.found).toBe('not tried: the version of the app is not higher')
    expect(found(report, 'events')?.found).toBe('not tried: the realtime channel is not open')
    expect(found(report, 'speak-reference')?.found).toBe('not tried: speech-output/say: 200')
    expect(outcome(report, 'installFromAppStore')).toBe('not_tried')
  })
})
