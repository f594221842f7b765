/** `ok: true` means that the hub confirmed it: what a look after a lost or strange answer may prove, and what not. */
import { describe, expect } from 'vitest'
import { mosquittoPath } from '../support/brokers.ts'
import type { JumpClock } from '../support/jump-clock.ts'
import { until } from '../support/until.ts'
import { World, type WorldOptions, test as worldTest } from '../support/world.ts'

const APP = 'the.app'
const CONFIRM = JSON.stringify({ confirm: APP })
const NEW_APP = 'com.harborlight.irrigation'
const apps = [
  { id: APP, version: '1.0.0', update: '1.1.0', settings: { x: 1, y: 2 } },
  { id: 'another.app' },
  { id: 'third.app' },
]
const cmd = (command: string) => `home/app/${APP}/cmd/${command}`
const asked = ({ hub }: World, operation: string) => hub.requests.filter((one) => one.operation === operation)

/** A hub that is read when asked, and not by a timer that a test does not see. */
const optionsWith = ({ hub, env, ...options }: WorldOptions = {}): WorldOptions => ({
  hub: { apps, ...hub },
  env: { COMMANDS_ALLOW: '*', HUB_POLL_INTERVAL: '1h', HUB_POLL_INTERVAL_FALLBACK: '1h', ...env },
  ...options,
})
const begin = (options?: WorldOptions) => World.start(optionsWith(options))
const test = worldTest.extend({ options: optionsWith() })

/** Lets time pass quickly until the answer is there, leaving the bridge a moment for each second of it. */
async function fastForward<T>(clock: JumpClock, promise: Promise<T>): Promise<T> {
  let settled = false
  void promise.finally(() => {
    settled = true
  })
  await until('the answer', () => {
    if (!settled) clock.jump(200)
    return settled
  })
  return promise
}

describe.concurrent('after a write that was not answered', () => {
  test.each([
    ['uninstall', 'uninstallApp', CONFIRM],
    ['unset-setting/x', 'unsetAppSetting', ''],
    ['set-setting/x', 'setAppSetting', '[null]'],
    ['disable', 'disableApp', ''],
    ['install', 'installFromAppStore', ''],
  ] as const)('%s that was carried out is ok', async (command, operation, payload) => {
    await using world = await begin()
    world.hub.behave('execute-then-reset', { operation })
    expect(await world.ask(cmd(command), payload)).toMatchObject({ ok: true })
  })

  test('an app that was there before an install of it is no proof that it was installed', async ({ world }) => {
    const { clock } = world
    world.hub.behave('reset-before-executing', { operation: 'installFromAppStore' })
    const answer = await fastForward(clock, world.ask('home/cmd/install', JSON.stringify({ id: 'another.app' })))
    expect(answer.error?.code).toBe('outcome_unknown')
  })

  test('a new app that is there now proves its install', async ({ world }) => {
    world.hub.behave('execute-then-reset', { operation: 'installFromAppStore' })
    expect(await world.ask('home/cmd/install', JSON.stringify({ id: NEW_APP }))).toMatchObject({ ok: true })
  })

  test.each([
    ['uninstall', 'uninstallApp', CONFIRM, ['getApp']],
    ['unset-setting/x', 'unsetAppSetting', '', ['getAppSetting']],
  ] as const)('the 404 page of a gateway does not prove %s', async (command, operation, payload, looks) => {
    await using world = await begin()
    world.hub.behave('reset-before-executing', { operation })
    world.hub.behave('gateway-page', { status: 404, operation: looks })
    expect((await world.ask(cmd(command), payload)).error?.code).toBe('outcome_unknown')
  })

  test.each([
    ['half a list', 'uninstall', { 'another.app': { id: 'another.app' } }],
    ['an empty list', 'uninstall', {}],
    ['an error that looks like a list', 'uninstall', { error: 'starting up' }],
    ['an error that looks like settings', 'unset-setting/x', { error: 'starting up' }],
    ['settings that still have it', 'unset-setting/x', { x: 1 }],
  ] as const)('%s does not prove %s', async (_, command, value) => {
    await using world = await begin()
    const ofApp = command === 'uninstall'
    world.hub.behave('reset-before-executing', { operation: ofApp ? 'uninstallApp' : 'unsetAppSetting' })
    world.hub.behave('gateway-page', { status: 404, operation: ofApp ? 'getApp' : 'getAppSetting' })
    world.hub.behave('wrong-shape', { operation: ofApp ? 'getApps' : 'getAppSettings', value })
    expect((await world.ask(cmd(command), ofApp ? CONFIRM : '')).error?.code).toBe('outcome_unknown')
  })

  test.each([
    ['uninstall', 'getApps', 'uninstallApp', CONFIRM],
    ['uninstall', 'getApp', 'uninstallApp', CONFIRM],
    ['unset-setting/x', 'getAppSettings', 'unsetAppSetting', ''],
    ['unset-setting/x', 'getAppSetting', 'unsetAppSetting', ''],
  ] as const)('%s that was carried out is not ok while %s fails', async (command, look, operation, payload) => {
    await using world = await begin()
    world.hub.behave('execute-then-reset', { operation })
    world.hub.behave('answer-status', { operation: look })
    expect((await world.ask(cmd(command), payload)).error?.code).toBe('outcome_unknown')
    expect(asked(world, look)).not.toEqual([])
  })

  test('an empty answer does not prove that a setting is null', async ({ world }) => {
    world.hub.behave('reset-before-executing', { operation: 'setAppSetting' })
    world.hub.behave('wrong-shape', { operation: 'getAppSetting', value: null })
    expect((await world.ask(cmd('set-setting/x'), 'null')).error?.code).toBe('outcome_unknown')
  })
})

describe.concurrent('an answer that contradicts what was asked', () => {
  test('leaves the outcome unknown: the record that comes back shows the old value', async ({ world }) => {
    world.hub.behave('pretend', { operation: 'updateApp', value: { id: APP, autoupdate: true } })
    expect((await world.ask(cmd('autoupdate'), 'OFF')).error?.code).toBe('outcome_unknown')
    expect((await world.ask(cmd('update'), '{"autoupdate":false}')).error?.code).toBe('outcome_unknown')
  })

  test.each([
    ['disable', '', 'disableApp'],
    ['restart', '', 'restartApp'],
    ['set-setting/x', '7', 'setAppSetting'],
    ['install', '', 'installFromAppStore'],
  ] as const)('is a failure: %s is answered with an error under status 200', async (command, payload, operation) => {
    await using world = await begin()
    world.hub.behave('pretend', { operation, value: { error: 'starting up' } })
    expect((await world.ask(cmd(command), payload)).error?.code).toBe('hub_failed')
  })

  test.each([
    ['restart', '', 'restartApp', { value: { success: false } }, 'hub_failed'],
    ['set-setting/x', '7', 'setAppSetting', { value: 1 }, 'outcome_unknown'],
    ['enable', '', 'enableApp', { value: { id: 'another.app', enabled: true } }, 'outcome_unknown'],
    ['uninstall', CONFIRM, 'uninstallApp', { value: false }, 'hub_failed'],
    ['restart', '', 'restartApp', { value: { id: 'another.app' } }, 'outcome_unknown'],
    ['uninstall', CONFIRM, 'uninstallApp', { value: { id: 'another.app' } }, 'outcome_unknown'],
  ] as const)('is no ok: %s %s, %s answered with %j', async (command, payload, operation, answer, code) => {
    await using world = await begin()
    world.hub.disable(APP)
    world.hub.behave('pretend', { operation, ...answer })
    expect((await world.ask(cmd(command), payload)).error?.code).toBe(code)
  })

  test('is ok where a look finds it done', async ({ world }) => {
    world.hub.behave('wrong-shape', { operation: ['disableApp', 'setAppSetting'] })
    expect(await world.ask(cmd('disable'))).toMatchObject({ ok: true, data: null })
    expect(await world.ask(cmd('set-setting/x'), '7')).toMatchObject({ ok: true, data: null })
  })
})

describe.concurrent.each(['older', 'newer'] as const)('a change of the channel on a hub of the %s kind', (flavour) => {
  const channel = flavour === 'older' ? 'beta' : 'test'

  test('is an install with that channel', async () => {
    await using world = await begin({ hub: { flavour, apps } })
    expect(await world.ask(cmd('update'), JSON.stringify({ channel }))).toMatchObject({ ok: true, data: null })
    expect(world.hub.apps.get(APP)?.channel).toBe(channel)
    expect(asked(world, 'installFromAppStore').map(({ body }) => body)).toMatchObject([{ id: APP, channel }])
    expect(asked(world, 'updateApp')).toEqual([])
  })

  test('to the one that it has asks the hub for nothing', async () => {
    await using world = await begin({ hub: { flavour, apps } })
    const present = world.hub.apps.get(APP)?.channel
    expect(await world.ask(cmd('update'), JSON.stringify({ channel: present }))).toMatchObject({ ok: true })
    expect(asked(world, 'installFromAppStore')).toEqual([])
  })

  test('comes after automatic updates, and its failure says what was done before', async () => {
    await using world = await begin({ hub: { flavour, apps } })
    world.hub.behave('answer-status', { operation: 'installFromAppStore', status: 503, times: 1 })
    const payload = JSON.stringify({ autoupdate: false, channel })
    expect(await world.ask(cmd('update'), payload)).toMatchObject({
      ok: false,
      error: { code: 'hub_failed', status: 503 },
      data: { done: ['autoupdate'] },
    })
    expect(world.hub.apps.get(APP)?.autoupdate).toBe(false)
    const failed = await world.ask(cmd('update'), '{"channel":"nonsense"}')
    expect(failed).toMatchObject({ ok: false, error: { code: 'hub_rejected' } })
    expect(failed).not.toHaveProperty('data')
    expect(await world.ask(cmd('update'), payload)).toMatchObject({ ok: true })
  })
})

describe.concurrent('a command of several parts', () => {
  const times = ['expires_at', ...(mosquittoPath === undefined ? [] : ['messageExpiryInterval'])]
  test.each(times)('ends with the part in which its time passes: %s', async (how) => {
    await using world = await begin()
    const { hub, clock } = world
    hub.behave('slow-headers', { operation: 'updateApp', ms: 300 })
    const parts = { autoupdate: false, channel: 'beta' }
    const isMessage = how === 'messageExpiryInterval'
    const payload = JSON.stringify({ ...parts, ...(!isMessage && { expires_at: clock.now() + 4_000 }) })
    const answer = world.ask(cmd('update'), payload, isMessage ? { properties: { [how]: 4 } } : {})
    await until('the first part', () => asked(world, 'updateApp').length === 1)
    clock.jump(5_000)
    expect(await answer).toMatchObject({ error: { code: 'expired' }, data: { done: ['autoupdate'] } })
    expect(hub.apps.get(APP)?.autoupdate).toBe(false)
    expect(asked(world, 'installFromAppStore')).toEqual([])
  })

  test('goes on where its requester named no time, however long the first part took', async ({ world }) => {
    world.hub.behave('slow-headers', { operation: 'updateApp', ms: 300 })
    const answer = world.ask(cmd('update'), '{"autoupdate":false,"channel":"beta"}')
    await until('the first part', () => asked(world, 'updateApp').length === 1)
    world.clock.jump(8_000)
    expect(await answer).toMatchObject({ ok: true })
  })
})

describe.concurrent('an install that takes longer than a call may', () => {
  const inProgress = ({ observer }: World) =>
    JSON.parse(observer.last(`hub2mqtt/home/app/${APP}/update`) ?? '{}').in_progress

  test('shows its progress until the hub has another version, and is ok then', async () => {
    await using world = await begin({ env: { HUB_TIMEOUT: '300ms' } })
    world.hub.behave('never-answer', { operation: 'installFromAppStore' })
    const answer = world.ask(cmd('install'))
    await until('a look', () => {
      const order = world.hub.requests.map(({ operation }) => operation)
      return (
        order.lastIndexOf('getApps') > order.indexOf('installFromAppStore') && order.includes('installFromAppStore')
      )
    })
    expect(inProgress(world)).toBe(true)
    world.hub.install(APP)
    expect(await answer).toMatchObject({ ok: true })
    await until('the end of the progress', () => inProgress(world) === false)
    expect(asked(world, 'installFromAppStore')).toHaveLength(1)
  })

  test('is unknown after a minute without another version', async ({ world }) => {
    const { clock } = world
    world.hub.behave('execute-then-reset', { operation: 'installFromAppStore' })
    const before = clock.elapsed()
    const answer = await fastForward(clock, world.ask('home/app/another.app/cmd/install'))
    expect(answer.error?.code).toBe('outcome_unknown')
    expect(clock.elapsed() - before).toBeGreaterThan(55_000)
    expect(asked(world, 'installFromAppStore')).toHaveLength(1)
  })

  test('is ok by the channel that was asked for', async ({ world }) => {
    world.hub.behave('execute-then-reset', { operation: 'installFromAppStore' })
    expect(await world.ask('home/app/another.app/cmd/install', '{"channel":"beta"}')).toMatchObject({ ok: true })
  })
})

describe.concurrent('an install that the hub confirms before it is done', () => {
  /** What the update entity has shown: whether there is progress, and of which version. */
  const shown = ({ observer }: World) =>
    observer.texts(`hub2mqtt/home/app/${APP}/update`).map((text) => {
      const { in_progress, installed_version } = JSON.parse(text || '{}')
      return `${in_progress} ${installed_version}`
    })

  /** Resolves when the hub has confirmed an install, and its list was read again after that. */
  async function confirmed(world: World): Promise<void> {
    world.hub.behave('pretend', { operation: 'installFromAppStore', value: null })
    expect(await world.ask(cmd('install'))).toMatchObject({ ok: true })
    expect(await world.ask('home/cmd/refresh')).toMatchObject({ ok: true })
    expect(shown(world)).toEqual(['false 1.0.0', 'true 1.0.0'])
  }

  test.each(['true', 'false'])('shows progress until its version is there (realtime: %s)', async (realtime) => {
    await using world = await begin({ env: { HUB_REALTIME: realtime } })
    await confirmed(world)
    world.hub.install(APP)
    expect(await world.ask('home/cmd/refresh')).toMatchObject({ ok: true })
    await until('the end of the progress', () => shown(world).at(-1) === 'false 1.1.0')
    expect(shown(world)).not.toContain('true 1.1.0')
    expect(shown(world).filter((one) => one === 'false 1.0.0')).toHaveLength(1)
  })

  test('shows progress for a minute at most', async ({ world }) => {
    await confirmed(world)
    world.clock.jump(60_000)
    await until('the end of the progress', () => shown(world).at(-1) === 'false 1.0.0')
  })

  test('shows no progress once it is started again and fails', async ({ world }) => {
    await confirmed(world)
    world.hub.behaveWell()
    world.hub.behave('answer-status', { status: 400, operation: 'installFromAppStore' })
    expect(await world.ask(cmd('install'))).toMatchObject({ ok: false })
    await until('the end of the progress', () => shown(world).at(-1) === 'false 1.0.0')
  })

  test('shows no progress after its app was hidden and is shown again', async ({ world }) => {
    await confirmed(world)
    world.bridge.reload(`apps: { exclude: [${APP}] }\n`)
    await until('the app to go', () => world.observer.last(`hub2mqtt/home/app/${APP}/update`) === '')
    world.bridge.reload('apps: { exclude: [] }\n')
    await until('the app to come back', () => world.observer.last(`hub2mqtt/home/app/${APP}/update`) !== '')
    expect(shown(world).at(-1)).toBe('false 1.0.0')
  })
})

describe.concurrent('an install', () => {
  test('names the version and waits for its end where the hub is known to take that', async () => {
    await using newer = await begin({ hub: { flavour: 'newer', apps } })
    expect(await newer.ask(cmd('install'), '{"version":"1.1.0"}')).toMatchObject({ ok: true })
    expect(await newer.ask('home/cmd/install', JSON.stringify({ id: NEW_APP }))).toMatchObject({ ok: true })
    expect(asked(newer, 'installFromAppStore').map(({ body }) => body)).toEqual([
      { id: APP, version: '1.1.0', waitForInstall: true },
      { id: NEW_APP, waitForInstall: true },
    ])
    await using older = await begin({ hub: { flavour: 'older', apps } })
    expect(await older.ask(cmd('install'))).toMatchObject({ ok: true })
    expect(asked(older, 'installFromAppStore').map(({ body }) => body)).toEqual([{ id: APP }])
  })

  test('of a version that does not come is a failure, whatever the hub says', async ({ world }) => {
    const { clock } = world
    const answer = await fastForward(clock, world.ask(cmd('install'), '{"version":"9.9.9"}'))
    expect(answer.error?.code).toBe('hub_failed')
  })

  test('by an app topic never brings in an app that the hub does not have', async () => {
    await using world = await begin({ env: { COMMANDS_ALLOW: '' } })
    // The hub is online and its list is not to be read: which apps it has is not known.
    world.hub.behave('answer-status', { status: 403, operation: 'getApps' })
    await world.restart()
    await until('the hub', () => world.observer.last('hub2mqtt/home/info')?.includes('"reason":"forbidden"'))
    const answer = await world.ask(`home/app/${NEW_APP}/cmd/install`)
    expect(answer.error?.code).toBe('unknown_app')
    expect(asked(world, 'installFromAppStore')).toEqual([])
  })
})

describe.concurrent('a request that the hub puts off (429)', () => {
  test('is sent again, a write too, and is carried out once', async ({ world }) => {
    world.hub.behave('answer-status', { status: 429, times: 1, operation: ['restartApp', 'getAppSettings'] })
    expect(await world.ask(cmd('restart'))).toMatchObject({ ok: true })
    expect(asked(world, 'restartApp').map(({ executed }) => executed)).toEqual([false, true])
    world.hub.behave('answer-status', { status: 429, times: 1, operation: 'getAppSettings' })
    expect(await world.ask(cmd('get-settings'))).toMatchObject({ ok: true, data: { x: 1 } })
  })

  test('is answered rate_limited when its deadline leaves no more room, and may be asked for again', async () => {
    await using world = await begin()
    world.hub.behave('answer-status', { status: 429, retryAfter: 30, operation: 'restartApp' })
    expect(await world.ask(cmd('restart'), '{"transaction":"t"}')).toMatchObject({
      ok: false,
      error: { code: 'rate_limited', status: 429 },
    })
    expect(asked(world, 'restartApp')).toHaveLength(1)
    world.hub.behaveWell()
    const again = await world.ask(cmd('restart'), '{"transaction":"t"}')
    expect(again).toMatchObject({ ok: true })
    expect(again).not.toHaveProperty('replayed')
  })

  test('is not sent again when the right to it has been taken away meanwhile', async () => {
    await using world = await begin({ env: {}, file: 'commands: {read_only: false}\n' })
    world.hub.behave('answer-status', { status: 429, retryAfter: 2, operation: 'restartApp' })
    const answer = world.ask(cmd('restart'))
    await until('the request', () => asked(world, 'restartApp')[0])
    world.bridge.reload('commands: {read_only: true}\n')
    expect((await answer).error?.code).toBe('not_allowed')
    expect(asked(world, 'restartApp')).toHaveLength(1)
  })
})

describe.skipIf(mosquittoPath === undefined)('a report to the developer (get-std)', { concurrent: true }, () => {
  test('is a write: refused where only reading is allowed, and audited', async () => {
    await using reading = await begin({ env: { COMMANDS_READ_ONLY: 'true' } })
    expect((await reading.ask(cmd('get-std'))).error?.code).toBe('not_allowed')
    await using world = await begin()
    await world.ask(cmd('get-std'), '{"transaction":"report"}')
    const lines = world.bridge.lines.map((line) => JSON.parse(line))
    expect(lines.find(({ transaction }) => transaction === 'report')).toMatchObject({
      level: 'info',
      command: 'get-std',
    })
    world.hub.behave('execute-then-reset', { operation: 'getAppStd' })
    expect((await world.ask(cmd('get-std'))).error?.code).toBe('outcome_unknown')
  })
})
