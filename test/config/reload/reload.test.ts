import { rmSync, writeFileSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { CHECK_MS } from '../../../src/config/hubs-dir.ts'
import { EMPTY_MS } from '../../../src/config/live-config.ts'
import { temporaryFolder } from '../../support/at-end.ts'
import { startBridge } from '../../support/bridge.ts'
import { APP, Fleet } from '../../support/fleet.ts'
import type { JumpClock } from '../../support/jump-clock.ts'
import { retainedOn } from '../../support/observer.ts'
import { until } from '../../support/until.ts'
import { ALL_SCOPES, KEY, World, type WorldOptions } from '../../support/world.ts'

/** Starts a world with this configuration file. Only the addresses of the hub and the broker are in the environment. */
const start = (file: string, options: WorldOptions = {}) => World.start({ ...options, file })
const logged = (world: World, text: string) => world.bridge.lines.some((line) => line.includes(text))
const readAgain = (world: World, text: string) => until(text, () => logged(world, text))
type OnBroker = Pick<World, 'broker'>
const topicsOf = async (world: OnBroker, hub: string) =>
  [...(await retainedOn(world.broker.port)).keys()].filter((topic) => topic.startsWith(`hub2mqtt/${hub}/`))
const noTopicsOf = (world: OnBroker, hub: string) =>
  until(`no topics of ${hub}`, async () => (await topicsOf(world, hub)).length === 0)
const reads = ({ lines }: ReturnType<typeof startBridge>) =>
  lines.filter((line) => line.includes('configuration read again')).length
/**
 * Makes the bridge check its folder until `probe` returns `true`, because the test cannot see when a check begins.
 * `probe` must not wait for an answer from the hub or the broker, because each jump of the clock may time out requests.
 */
const checkUntil = (clock: JumpClock, what: string, probe: () => boolean) => {
  const checkAndProbe = () => {
    clock.jump(CHECK_MS)
    return probe()
  }
  return until(what, checkAndProbe, 10_000, 100)
}
/** Creates an empty hubs folder for bridges of a fleet. Each added file names the fleet's first hub. */
async function hubsIn(fleet: Fleet) {
  const { path } = fleet.use(await mkdtempDisposable(join(tmpdir(), 'hubs-')))
  const fileOf = (name: string) => join(path, `${name}.yaml`)
  return {
    path,
    /** The published state of the hub with this name. */
    state: (name: string) => fleet.observer.last(`hub2mqtt/${name}/state`),
    add: (name: string) => writeFileSync(fileOf(name), `url: "${fleet.hub('h0').url}"\napi_key: "${KEY}"\n`),
    remove: (name: string) => rmSync(fileOf(name)),
    begin: (file = '') => startBridge({ MQTT_URL: fleet.broker.url, HUBS_DIR: path }, file, fleet.clock),
  }
}
const events = (world: World) => world.observer.seen.filter(({ topic }) => topic.endsWith('/event'))

describe.concurrent('a configuration that is read again changes while running', () => {
  it('the apps whose ids contain an API key: they are removed immediately', async () => {
    await using world = await start('hubs: {home: {}}\n', { env: { HUB_POLL_INTERVAL: '1h' } })
    const { app } = world
    // Wait, because the bridge reads the list again when the realtime channel is connected.
    await until('realtime', () => world.observer.last('hub2mqtt/home/info')?.includes('"connected"'))
    world.bridge.reload(`hubs:\n  home: {}\n  attic: {url: "http://127.0.0.1:1", api_key: "${app}"}\n`)
    await until('the removal of the app', () => world.observer.last(`hub2mqtt/home/app/${app}`) === '')
    expect(events(world)).toEqual([])
  })

  it('the hubs: each is added and removed with its file in their folder, without a signal', async () => {
    await using fleet = await Fleet.build({ hubs: 1 })
    const { state, add, remove, begin } = await hubsIn(fleet)
    add('home')
    await using bridge = begin()
    await until('the first hub', () => bridge.lines.some((line) => line.includes('hub online')))
    add('attic')
    await checkUntil(fleet.clock, 'the new file', () => reads(bridge) === 1)
    await until('the second hub', () => state('attic') === 'online')
    remove('home')
    await checkUntil(fleet.clock, 'the removed file', () => reads(bridge) === 2)
    await noTopicsOf(fleet, 'home')
  })

  it('the folder of the hubs: the bridge serves the hubs of the new folder, and checks that folder from then on', async () => {
    await using fleet = await Fleet.build({ hubs: 1 })
    const [former, next] = [await hubsIn(fleet), await hubsIn(fleet)]
    former.add('home')
    next.add('attic')
    await using bridge = startBridge({ MQTT_URL: fleet.broker.url }, `hubs_dir: ${former.path}\n`, fleet.clock)
    await until('the hub of the former folder', () => former.state('home') === 'online')
    bridge.reload(`hubs_dir: ${next.path}\n`)
    await until('the hub of the new folder', () => next.state('attic') === 'online')
    await noTopicsOf(fleet, 'home')
    expect(bridge.lines.join('')).not.toContain('takes effect at the next start')
    next.add('cellar')
    await checkUntil(fleet.clock, 'the new file', () => bridge.lines.some((line) => line.includes('"hubs.cellar"')))
    await until('the added hub', () => next.state('cellar') === 'online')
  })

  it('the hubs: a folder that is empty for less than a minute, while running or at the start, clears nothing', async () => {
    await using fleet = await Fleet.build({ hubs: 1 })
    const { observer, clock } = fleet
    const { state, add, remove, begin } = await hubsIn(fleet)
    const GUARDED = 'guard: {watch: ["*"]}\n'
    add('home')
    const bridge = begin(GUARDED)
    const said = ({ lines }: typeof bridge) => lines.filter((line) => line.includes('has no files')).length
    await until('the hub', () => state('home') === 'online')
    const remembered = `hub2mqtt/home/app/${APP}/guard`
    await until('the guardian', () => observer.last(remembered) !== undefined)
    await observer.publish(`hub2mqtt/home/app/${APP}/cmd/guard`, 'OFF')
    const topics = async () => {
      const held = await retainedOn(fleet.broker.port)
      return [...held].flatMap(([topic, text]) => (`${topic}${text}`.includes('/home/') ? [topic] : [])).sort()
    }
    await until('the control', () => observer.last(remembered)?.includes('"off"') === true)
    const before = await topics()
    const memory = observer.last(remembered)
    remove('home')
    await checkUntil(clock, 'the first warning', () => said(bridge) > 0)
    await bridge.stop()
    expect(await topics()).toEqual(before)
    await using next = begin(GUARDED)
    await until('the log line at the start', () => said(next) > 0)
    await until('the bridge', () => state('bridge') === 'online')
    clock.jump(EMPTY_MS / 2)
    expect(await topics()).toEqual(before)
    add('home')
    await checkUntil(clock, 'the new file', () => reads(next) === 1)
    await until('the hub again', () => next.lines.some((line) => line.includes('hub online')))
    expect(await topics()).toEqual(before)
    expect(observer.last(remembered)).toBe(memory)
    remove('home')
    await checkUntil(clock, 'the second warning', () => said(next) === 2)
    clock.jump(EMPTY_MS)
    await noTopicsOf(fleet, 'home')
  })

  it('the hubs: retained messages that a run with an empty folder leaves are cleared by the next run', async () => {
    await using fleet = await Fleet.build({ hubs: 1 })
    const { state, add, remove, begin } = await hubsIn(fleet)
    const names = ['home', 'attic']
    for (const name of names) add(name)
    await using first = begin()
    await until('the hubs', () => names.every((name) => state(name) === 'online'))
    await first.stop()
    for (const name of names) remove(name)
    await using second = begin()
    await until('the bridge', () => state('bridge') === 'online')
    await second.stop()
    expect(await topicsOf(fleet, 'attic')).not.toEqual([])
    add('home')
    await using _third = begin()
    await noTopicsOf(fleet, 'attic')
    expect(await topicsOf(fleet, 'home')).not.toEqual([])
  })

  it('the hubs: one with two names is in Home Assistant under the first name, until that name is removed', async () => {
    await using fleet = await Fleet.build({ hubs: 1 })
    const { url } = fleet.hub('h0')
    const config = (...names: string[]) =>
      `hubs:\n${names.map((name) => `  ${name}: {url: "${url}", api_key: "${KEY}"}\n`).join('')}`
    const namesTold = async () => {
      const held = await retainedOn(fleet.broker.port)
      const devices = [...held].filter(([topic]) => topic.startsWith('homeassistant/device/'))
      return new Set(devices.flatMap(([, payload]) => payload.match(/(?<=hub2mqtt\/)(home|attic)(?=\/state)/g) ?? []))
    }
    await using bridge = startBridge({ MQTT_URL: fleet.broker.url }, config('home', 'attic'))
    const warnings = () => bridge.lines.filter((line) => line.includes('configured twice'))
    await until('the warning', () => warnings().length > 0)
    const connected = (name: string) => fleet.observer.last(`hub2mqtt/${name}/info`)?.includes('"connected"') ?? false
    await until('both names', () => connected('home') && connected('attic'))
    const [first, ...others] = await namesTold()
    expect(others).toEqual([])
    const second = first === 'home' ? 'attic' : 'home'
    bridge.reload(config(second))
    await until('the other name', async () => [...(await namesTold())].join() === second)
    expect(warnings()).toHaveLength(1)
  })
})

describe.concurrent('a configuration that is read again', () => {
  it('and deliberately names no hub clears all of them, and refuses the commands that wait for them as unknown', async () => {
    await using fleet = await Fleet.build({ hubs: 1 })
    const emulated = fleet.hub('h0')
    const hub = `hubs: {home: {url: "${emulated.url}", api_key: "${KEY}"}}`
    await using bridge = startBridge({ MQTT_URL: fleet.broker.url }, hub)
    await until('the hub', () => fleet.observer.last('hub2mqtt/home/state') === 'online')
    emulated.behave('never-answer', { operation: 'restartApp' })
    const app = `hub2mqtt/home/app/${[...emulated.apps.keys()][0]}`
    for (const transaction of [1, 2])
      await fleet.observer.publish(`${app}/cmd/restart`, `{"transaction":${transaction}}`)
    await until('the first', () => emulated.requests.some(({ operation }) => operation === 'restartApp'))
    bridge.reload('hubs: {}')
    const answers = () => fleet.observer.texts(`${app}/result/restart`).map((text) => JSON.parse(text))
    await until('both answers', () => answers().length === 2)
    expect(answers().map(({ transaction, error }) => [transaction, error.code, error.message])).toEqual([
      [1, 'outcome_unknown', expect.any(String)],
      [2, 'unknown_hub', 'No hub of that name is configured.'],
    ])
    await noTopicsOf(fleet, 'home')
    bridge.reload('mqtt: {}')
    await until('the mistake', () => bridge.lines.some((line) => line.includes('no hub configured')))
  })

  it('lists options that need a restart, at each reload until the restart, and logs it at the new level', async () => {
    await using world = await start('log: {level: error}\n')
    for (const _ of [1, 2]) {
      const { length } = world.bridge.lines
      world.bridge.reload('log: {level: info}\nmqtt: {base_topic: other, keepalive: 10s}\n')
      const said = world.bridge.lines.slice(length).join()
      expect(said).toContain('configuration read again')
      expect(said).toContain('takes effect at the next start: mqtt.base_topic, mqtt.keepalive')
    }
    expect(await world.request('bridge/cmd/ping')).toMatchObject({ ok: true })
  })

  it('is not used if it is invalid or has become an empty file, and all of its errors are listed', async () => {
    await using world = await start('commands: {read_only: true}\n')
    world.bridge.reload(
      'commands: {read_only: perhaps}\nlog: {levle: info}\nhubs: {home: {api_key: tell-nobody!, ulr: x}}\n',
    )
    await readAgain(world, 'the previous one stays in effect')
    for (const mistake of ['commands.read_only (test.yaml line 1)', 'levle', 'ulr'])
      expect(logged(world, mistake)).toBe(true)
    expect(logged(world, 'tell-nobody')).toBe(false)
    world.bridge.reload('# nothing yet\n')
    await readAgain(world, 'the configuration file is now empty')
    expect(await world.request(`home/app/${world.app}/cmd/restart`)).toMatchObject({ error: { code: 'not_allowed' } })
    world.bridge.reload('commands: {}\n')
    expect(await world.request(`home/app/${world.app}/cmd/restart`)).toMatchObject({ ok: true })
  })
})

test.concurrent('a key with other permissions changes permissions, commands and entities immediately', async () => {
  const file = (key: string) => `hubs: {home: {api_key: ${key}}}\n`
  await using world = await start(file('narrow-key'), {
    hub: { keys: { 'narrow-key': ['hub.app.readonly'], 'wide-key': ALL_SCOPES } },
    env: { HUB_API_KEY: '', HUB_POLL_INTERVAL: '1h', HUB_POLL_INTERVAL_FALLBACK: '1h' },
  })
  const info = () => JSON.parse(world.observer.last('hub2mqtt/home/info') ?? '{}')
  const entities = () =>
    world.observer.seen.findLast(({ topic }) => topic.startsWith('homeassistant/device/hub2mqtt--'))?.text ?? ''
  expect(info().commands).not.toContain('restart')
  world.bridge.reload(file('wide-key'))
  await until('the permissions', () => info().permissions?.includes('hub.speech'))
  expect(info().commands).toContain('restart')
  await until('the entities', () => entities().includes('/cmd/restart'))
  world.bridge.reload(file('narrow-key'))
  await until('the permissions taken away', () => !info().permissions?.includes('hub.speech'))
  expect(info().commands).not.toContain('restart')
})

test.concurrent('a rotated key of a hub is read from its file when the old one is refused, without going offline, and is masked', async ({
  onTestFinished,
}) => {
  const path = join(temporaryFolder(onTestFinished), 'key')
  writeFileSync(path, KEY, { mode: 0o600 })
  await using world = await start('log: {level: debug}\n', { env: { HUB_API_KEY: '', HUB_API_KEY_FILE: path } })
  const { length } = world.observer.texts('hub2mqtt/home/state')
  writeFileSync(path, 'the-new-key\n')
  world.hub.setKeys({ 'the-new-key': ALL_SCOPES })
  await readAgain(world, 'using the new one')
  expect(await world.request('home/cmd/refresh')).toMatchObject({ ok: true })
  expect(world.observer.texts('hub2mqtt/home/state').slice(length)).toEqual([])
  expect(logged(world, 'the-new-key')).toBe(false)
})
