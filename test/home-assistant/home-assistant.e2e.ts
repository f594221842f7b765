/** Tests what a user sees and does in a real Home Assistant, with the bridge, an emulated hub and Mosquitto. */

import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { crashReasonOf } from '../../src/home-assistant/templates.ts'
import { retainedOn } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { KEY } from '../support/world.ts'
import {
  appId,
  BLUEPRINT,
  BRIDGE,
  CABIN,
  type Home,
  HUB,
  PUBLIC_URL,
  startCabin,
  startHome,
  VACUUM,
  WEATHER,
} from './support/home.ts'
import type { RegisteredEntity } from './support/home-assistant.ts'
import { testedVersions } from './support/versions.ts'

const HUE = appId('com_athom_hue')
const PUMP = appId('net_lindqvist_heatpump')
const SAUNA = appId('fi_kivinen_sauna')
const BELL = appId('nl_vandermolen_doorbell')

/** The entities of each app, written by hand: end of the unique id → domain and name. */
const OF_AN_APP: Readonly<Record<string, string>> = {
  enabled: 'switch null',
  running: 'binary_sensor Running',
  problem: 'binary_sensor Problem',
  state: 'sensor State',
  update: 'update Update',
  event: 'event Event',
  restart: 'button Restart',
  garbage_collect: 'button Free memory',
  autoupdate: 'switch Automatic updates',
  cpu: 'sensor CPU',
  memory: 'sensor Memory',
  crash_count: 'sensor Crashes',
  channel: 'sensor Channel',
  origin: 'sensor Origin',
  devices_away: 'binary_sensor Devices unavailable',
  devices_unavailable: 'sensor Unavailable devices',
  flows_broken: 'sensor Broken flows',
}
const OF_THE_HUB: Readonly<Record<string, string>> = {
  connected: 'binary_sensor Connected',
  reason: 'sensor Reason',
  realtime: 'sensor Realtime',
  apps: 'sensor Apps',
  apps_crashed: 'sensor Crashed apps',
  updates_available: 'sensor Available updates',
  update_all: 'button Update all',
  cpu: 'sensor CPU of the apps',
  memory: 'sensor Memory of the apps',
  memory_free: 'sensor Free memory',
  load: 'sensor Load',
  temperature: 'sensor Temperature',
  storage_free: 'sensor Free storage',
  last_boot: 'sensor Last boot',
  undervoltage: 'binary_sensor Under-voltage',
  speak: 'notify Speak',
  speak_text: 'text Say',
  refresh: 'button Refresh',
}
const OF_THE_BRIDGE: Readonly<Record<string, string>> = {
  connected: 'binary_sensor Connected',
  version: 'sensor Version',
  log_level: 'select Log level',
  last_start: 'sensor Last start',
}
const HIDDEN = [
  ...['state', 'garbage_collect', 'autoupdate', 'cpu', 'memory', 'crash_count', 'channel', 'origin'],
  ...['devices_unavailable', 'flows_broken'],
]
/** Entities that are enabled because an earlier version enabled them by default, or because the user did. */
const SHOWN = [
  ...['state', 'garbage_collect', 'autoupdate', 'cpu', 'crash_count'].map((key) => `${VACUUM}--${key}`),
  `${WEATHER}--autoupdate`,
]
/** A removed entity, off by default in version 0.1.0. Home Assistant keeps it while its device or its topic exists. */
const KEPT = `${VACUUM}--version`
const SETTINGS: Readonly<Record<string, string>> = {
  setting_transition: 'number Transition',
  setting_night: 'switch Night',
  setting_mode: 'select Mood',
  setting_greeting: 'text Greeting',
  setting_pin: 'text Pin',
}

/** Time limit for Home Assistant to react. It should not be polled too often. */
const WAIT = { timeout: 30_000 }
const eventually = <T>(what: string, probe: () => T | undefined | false | Promise<T | undefined | false>) =>
  until(what, probe, WAIT.timeout, 50)

describe.each(await testedVersions())('in Home Assistant $name, a user', (version) => {
  if (version.runtime === undefined) {
    test.skip('is not tested, because this version cannot be installed here')
    return
  }

  let home: Home
  let ha: Home['ha']
  let world: Home['world']
  let began = 0
  const took: string[] = []

  beforeAll(async () => {
    const start = performance.now()
    home = await startHome(version)
    ;({ ha, world } = home)
    took.push(`${seconds(start)} everything started`)
  })
  beforeEach(() => {
    began = performance.now()
  })
  afterEach(({ task }) => {
    took.push(`${seconds(began)} ${task.result?.state === 'fail' ? 'FAILED: ' : ''}${task.name}`)
  })
  afterAll(async () => {
    await home?.[Symbol.asyncDispose]()
    const complaints = ha?.complaints() ?? []
    took.push(`         ${complaints.length} warnings and errors of its MQTT integration:`)
    const words = (line: string) => line.replace(/^.*\[homeassistant[^\]]*\] /, '').slice(0, 35)
    for (const [what, lines] of Map.groupBy(complaints, words)) took.push(`         ${lines.length} × ${what}…`)
    process.stdout.write(`\nchecks against a real Home Assistant ${version.name}:\n${took.join('\n')}\n`)
  })

  const registered = async () => (await ha.entities()).filter(({ unique_id }) => unique_id !== KEPT)
  const registry = async (): Promise<Record<string, string>> => {
    const entities = await registered()
    return Object.fromEntries(
      entities.map(({ unique_id, entity_id }): [string, string] => [unique_id, entity_id]).sort(),
    )
  }
  const describeAll = async () => {
    const entities = await registered()
    return Object.fromEntries(
      entities.map((entity) => [entity.unique_id, `${entity.entity_id.split('.')[0]} ${entity.original_name}`]),
    )
  }
  const expected = () => {
    const under = (id: string, rows: Readonly<Record<string, string>>) =>
      Object.entries(rows).map(([key, what]) => [`${id}--${key}`, what])
    const ids = [...world.hub.apps.keys()].map((id) => appId(byHand(id)))
    return Object.fromEntries([
      ...under(BRIDGE, OF_THE_BRIDGE),
      ...under(HUB, OF_THE_HUB),
      ...ids.flatMap((id) => under(id, OF_AN_APP)),
      ...under(HUE, SETTINGS),
    ])
  }
  /** Waits until exactly the expected entities exist, and none is unavailable or still waiting for its state. */
  const allWell = () =>
    vi.waitFor(
      async () => {
        expect(await describeAll()).toEqual(expected())
        const states = [...(await ha.states()).values()]
        const ours = new Set(Object.values(await registry()))
        const unavailable = states.filter((state) => ours.has(state.entity_id) && state.state === 'unavailable')
        expect(unavailable.map(({ entity_id }) => entity_id)).toEqual([])
      },
      { timeout: 60_000 },
    )
  /** Returns the cleared topics of devices. Excludes the removed device, which Home Assistant clears repeatedly. */
  const cleared = () =>
    world.observer.seen
      .filter(({ topic, text }) => topic.startsWith('homeassistant/device/') && !topic.includes(SAUNA) && text === '')
      .map(({ topic }) => topic)
  const untilUnavailable = (uniqueId: string) => ha.untilState(uniqueId, 'unavailable', 60_000)

  test('finds every device and entity, with the right name', async () => {
    await allWell()
    const devices = await ha.devices()
    const byId = new Map(devices.map((device) => [device.identifiers[0]?.[1], device]))
    expect(byId.get(HUE)?.name).toBe('Lumen Lights')
    expect(byId.get(HUB)?.name).toBe('Home hub')
    expect(byId.get(BRIDGE)?.name).toBe('hub2mqtt')
    expect(byId.get(HUE)?.via_device_id).toBe(byId.get(HUB)?.id)
    expect(byId.get(HUB)?.via_device_id).toBe(byId.get(BRIDGE)?.id)
    expect(byId.get(appId('x_hostile'))?.name).toBe('"<b>&\' {{ 1/0 }} {% raw %} 😀')
    expect(byId.get(appId('x_nameless'))?.name).toBe('x.nameless')
    const entities = await ha.entities()
    const hidden = entities.filter(({ disabled_by }) => disabled_by !== null).map(({ unique_id }) => unique_id)
    const wanted = [...world.hub.apps.keys()].flatMap((id) => HIDDEN.map((key) => `${appId(byHand(id))}--${key}`))
    const expectable = wanted.filter((id) => !SHOWN.includes(id))
    const hiddenOfHub = ['speak_text', 'cpu', 'memory'].map((key) => `${HUB}--${key}`)
    expect(hidden.sort()).toEqual([...expectable, ...hiddenOfHub, KEPT].sort())
    expect(await registry()).toMatchObject({
      [`${HUE}--enabled`]: 'switch.lumen_lights',
      [`${HUE}--running`]: 'binary_sensor.lumen_lights_running',
      [`${HUB}--apps_crashed`]: 'sensor.home_hub_crashed_apps',
      [`${BRIDGE}--log_level`]: 'select.hub2mqtt_log_level',
      [`${appId('x_danish')}--enabled`]: 'switch.smorrebrod_aussen',
      [`${appId('x_cyrillic')}--enabled`]: 'switch.umnyi_dom',
      [`${appId('x_chinese')}--enabled`]: 'switch.kong_diao',
    })
  })

  test('keeps the entity ids of an earlier version, and none of the removed entities', async () => {
    const before = home.legacy.find(({ unique_id }) => unique_id === `${BELL}--enabled`)?.entity_id
    expect(before).toMatch(/^switch\./)
    expect((await ha.entity(`${BELL}--enabled`)).entity_id).toBe(before)
    expect(home.legacy.map(({ unique_id }) => unique_id)).toContain(`${BELL}--version`)
    expect(Object.keys(await registry())).not.toContain(`${BELL}--version`)
  })

  test('has every entity of versions 0.1.0 and 0.2.0 enabled or disabled as before, and no device was removed', async () => {
    const described = (entities: readonly RegisteredEntity[]) =>
      new Map(entities.map(({ unique_id, entity_id, disabled_by }) => [unique_id, `${entity_id} ${disabled_by}`]))
    const before = described(home.legacy.filter(({ unique_id }) => unique_id !== `${BELL}--version`))
    const after = described(await ha.entities())
    expect(new Map([...after].filter(([id]) => before.has(id)))).toEqual(new Map([...before].sort()))
    for (const [what, all] of Object.entries({ before, after })) {
      const ofThem = [...all].filter(([id]) => before.has(id)).map(([, state]) => state)
      const enabled = ofThem.filter((state) => state.endsWith(' null')).length
      took.push(
        `         entities of earlier versions ${what}: ${enabled} enabled, ${ofThem.length - enabled} disabled`,
      )
    }
    expect(cleared()).toEqual([])
  })

  test('sees the manufacturer of hub and bridge, and the address of the hub', async () => {
    expect(await ha.device(HUB)).toMatchObject({ manufacturer: 'Athom', configuration_url: world.hub.url })
    expect(await ha.device(BRIDGE)).toMatchObject({
      manufacturer: 'hub2mqtt',
      configuration_url: `${PUBLIC_URL}/#/bridge`,
    })
  })

  test('sees the icon of an app, and a link to its page', async () => {
    expect((await ha.device(HUE)).configuration_url).toBe(`${PUBLIC_URL}/#/app/home/com.athom.hue`)
    const entity_picture = `${PUBLIC_URL}/api/hubs/home/apps/com.athom.hue/icon`
    for (const key of ['enabled', 'update']) {
      expect((await ha.state(`${HUE}--${key}`))?.attributes, key).toMatchObject({ entity_picture })
    }
    expect((await ha.state(`${HUE}--update`))?.attributes['release_url']).toBe('https://homey.app/a/com.athom.hue')
  })

  test('still sees the title of an update when the app has a new version and a new name', async () => {
    world.hub.change('com.athom.hue', { version: '7.0.11' })
    await eventually('the new version', async () => (await ha.device(HUE)).sw_version === '7.0.11')
    expect((await ha.state(`${HUE}--update`))?.attributes['title']).toBe('Lumen Lights')
    world.hub.change('com.athom.hue', { version: '7.0.12' })
    await eventually('the old version', async () => (await ha.device(HUE)).sw_version === '7.0.12')
    expect((await ha.state(`${HUE}--update`))?.attributes['title']).toBe('Lumen Lights')
  })

  test('sees the reason of the last crash of an app, never as a reserved state of Home Assistant', async () => {
    const template = crashReasonOf('last_crash').jinja
    const given = (json: string) => `{% set value_json = ${json} %}`
    expect(await ha.render(template)).toBe('None')
    expect(await ha.render(given("{'last_crash': none}") + template)).toBe('none')
    expect(await ha.render(given("{'last_crash': {'reason': 'unknown'}}") + template)).toBe('other')
    expect(await ha.render(given("{'last_crash': {'reason': 'cpu_limit'}}") + template)).toBe('cpu_limit')
  })

  test('sees memory in MiB', async () => {
    const { components } = JSON.parse(world.observer.last(`homeassistant/device/${HUE}/config`) ?? '{}')
    const given = (bytes: string) => `{% set value_json = {'memory_bytes': ${bytes}} %}`
    expect(await ha.render(given('61341696') + components.memory.value_template)).toBe('58.5')
    expect(await ha.render(given('none') + components.memory.value_template)).toBe('None')
  })

  test('sees for every app whether it is enabled, runs, has crashed, and its version', async () => {
    const onOff = (is: boolean) => (is ? 'on' : 'off')
    const ofApps = [...world.hub.apps].flatMap(([id, app]) => {
      const device = appId(byHand(id))
      return [
        [`${device}--enabled`, onOff(app.enabled)],
        [`${device}--running`, onOff(app.state === 'running')],
        [`${device}--problem`, onOff(app.crashed)],
        ...(SHOWN.includes(`${device}--autoupdate`) ? [[`${device}--autoupdate`, onOff(app.autoupdate)]] : []),
        [`${device}--update`, onOff(id === 'net.lindqvist.heatpump')],
      ]
    })
    const wanted = {
      ...Object.fromEntries(ofApps),
      [`${HUB}--connected`]: 'on',
      [`${HUB}--realtime`]: 'connected',
      [`${HUB}--apps`]: String(world.hub.apps.size),
      [`${HUB}--apps_crashed`]: '1',
      [`${HUB}--updates_available`]: '1',
      [`${BRIDGE}--connected`]: 'on',
      [`${BRIDGE}--log_level`]: 'info',
      [`${BRIDGE}--last_start`]: expect.stringMatching(/^20\d\d-.*\+00:00$/),
      [`${HUE}--setting_transition`]: '400',
    }
    await vi.waitFor(async () => {
      const states = await ha.states()
      const shown = Object.entries(await registry()).map(([uniqueId, id]) => [uniqueId, states.get(id)?.state])
      expect(Object.fromEntries(shown)).toMatchObject(wanted)
    }, WAIT)
  })

  test('switches an app off and on, and sees the result', async () => {
    await ha.use('switch.turn_off', `${HUE}--enabled`)
    await ha.untilState(`${HUE}--enabled`, 'off')
    await ha.untilState(`${HUE}--running`, 'off')
    const stopped = () => world.hub.apps.get('com.athom.hue')?.state === 'stopped'
    await eventually('the app to stop', stopped)
    expect(world.hub.apps.get('com.athom.hue')?.enabled).toBe(false)
    await ha.use('switch.turn_on', `${HUE}--enabled`)
    await ha.untilState(`${HUE}--enabled`, 'on')
    await ha.untilState(`${HUE}--running`, 'on')
  })

  test('sees the switch unchanged when the hub refuses', async () => {
    world.hub.behave('answer-status', { status: 500, operation: 'disableApp' })
    await ha.use('switch.turn_off', `${HUE}--enabled`)
    await eventually('the call', () => world.requestCount('disableApp') >= 2)
    world.hub.behaveWell()
    await ha.use('button.press', `${HUB}--refresh`)
    await eventually('the answer', async () => (await ha.state(`${HUE}--enabled`))?.state === 'on')
  })

  test('restarts an app with a button', async () => {
    const before = world.requestCount('restartApp')
    await ha.use('button.press', `${HUE}--restart`)
    await ha.untilState(`${HUE}--running`, 'off')
    await ha.untilState(`${HUE}--running`, 'on')
    expect(world.requestCount('restartApp')).toBe(before + 1)
  })

  test('turns automatic updates on', async () => {
    await ha.use('switch.turn_on', `${WEATHER}--autoupdate`)
    await ha.untilState(`${WEATHER}--autoupdate`, 'on')
    expect(world.hub.apps.get('com.parkstreet.weather')?.autoupdate).toBe(true)
  })

  test('sees a failed update end, and the update still available', async () => {
    world.hub.behave('answer-status', { status: 500, operation: 'installFromAppStore', times: 1 })
    await ha.use('update.install', `${PUMP}--update`)
    await eventually('the call', () => world.requestCount('installFromAppStore') === 1)
    await eventually('its end', async () => (await ha.state(`${PUMP}--update`))?.attributes['in_progress'] === false)
    await ha.untilState(`${PUMP}--update`, 'on')
  })

  test('installs an update, and sees its progress', async () => {
    world.hub.behave('slow-headers', { ms: 1500, operation: 'installFromAppStore', times: 1 })
    expect((await ha.state(`${PUMP}--update`))?.attributes).toMatchObject({
      installed_version: '2.4.1',
      latest_version: '2.5.0',
      title: 'Heat Pump',
      in_progress: false,
    })
    await ha.use('update.install', `${PUMP}--update`)
    const progress = async () => (await ha.state(`${PUMP}--update`))?.attributes['in_progress']
    await eventually('progress', async () => (await progress()) === true)
    const { attributes } = await ha.untilState(`${PUMP}--update`, 'off')
    expect(attributes).toMatchObject({ installed_version: '2.5.0', latest_version: '2.5.0' })
    await eventually('the end of it', async () => (await progress()) === false)
    await ha.untilState(`${HUB}--updates_available`, '0')
  })

  test('sees an update whose version the hub does not report', async () => {
    world.hub.change('com.athom.hue', { updateAvailable: true })
    const { attributes } = await ha.untilState(`${HUE}--update`, 'on')
    const latest_version = expect.stringMatching(/^newer version, found 20\d\d-\d\d-\d\d \d\d:\d\d UTC$/)
    expect(attributes).toMatchObject({ installed_version: '7.0.12', latest_version })
    world.hub.change('com.athom.hue', { updateAvailable: null })
    await ha.untilState(`${HUE}--update`, 'off')
  })

  test('updates all apps with one button', async () => {
    const before = world.requestCount('installFromAppStore')
    world.hub.change('com.athom.hue', { updateAvailable: { version: '7.0.13' } })
    await ha.untilState(`${HUB}--updates_available`, '1')
    await ha.use('button.press', `${HUB}--update_all`)
    await eventually('the install', () => world.requestCount('installFromAppStore') === before + 1)
    world.hub.change('com.athom.hue', { version: '7.0.12', updateAvailable: null })
    await ha.untilState(`${HUE}--update`, 'off')
  })

  test('speaks through the hub, with any text', async () => {
    const texts = ['The door bell rings', '{"text": "not an envelope"}', '"<b>&\' {{ 1/0 }} 😀']
    for (const message of texts) await ha.use('notify.send_message', `${HUB}--speak`, { message })
    await eventually('speech', () => world.hub.spoken.length === texts.length)
    expect(world.hub.spoken).toEqual(texts)
  })

  test('sees a crash as a problem with its message, as an event, and as a trigger', async () => {
    const watched = await ha.watch((await ha.entity(`${HUE}--event`)).entity_id)
    const { id } = await ha.device(HUE)
    const offered = await ha.command<object[]>({ type: 'device_automation/trigger/list', device_id: id })
    for (const type of ['crashed', 'updated', 'command_failed']) {
      expect(offered).toContainEqual(expect.objectContaining({ domain: 'mqtt', type, subtype: 'app' }))
    }
    const triggered = await ha.watchTrigger(id, 'crashed')
    expect((await ha.state(`${HUE}--event`))?.attributes['event_types']).toContain('command_failed')
    const stack = '    at boom (/app/boom.js:1:2)\n    at {{ 1/0 }}'
    world.hub.crash('com.athom.hue', `Error: "boom" {{ 1/0 }}\n${stack}`)
    const { attributes } = await ha.untilState(`${HUE}--problem`, 'on')
    expect(attributes).toMatchObject({ message: 'Error: "boom" {{ 1/0 }}', stack, count: 1 })
    const event = await eventually('the event', () =>
      watched.seen.find(({ attributes }) => attributes['event_type'] === 'crashed'),
    )
    watched.close()
    await eventually('the trigger', () => triggered.fired.length > 0)
    triggered.close()
    expect(triggered.fired).toEqual([
      expect.objectContaining({ event_type: 'crashed', app: 'com.athom.hue', count: 1 }),
    ])
    const told = { app: 'com.athom.hue', message: 'Error: "boom" {{ 1/0 }}', stack, count: 1 }
    expect(event.attributes).toMatchObject(told)
    await ha.untilState(`${HUB}--apps_crashed`, '2')
    world.hub.recover('com.athom.hue')
    await ha.untilState(`${HUE}--problem`, 'off')
    await ha.untilState(`${HUE}--running`, 'on')
  })

  test('is notified of crashes by the blueprint, and not again when the bridge is back', async () => {
    const blueprints = await ha.command<Record<string, object>>({ type: 'blueprint/list', domain: 'automation' })
    const loaded = { metadata: expect.objectContaining({ domain: 'automation' }) }
    expect(blueprints).toEqual({
      [BLUEPRINT]: loaded,
      'hub2mqtt/tell_of_the_guardian.yaml': loaded,
      'hub2mqtt/ask_before_an_update.yaml': loaded,
    })
    const ofOurs = async () =>
      (await ha.notifications()).filter(({ notification_id }) => notification_id.startsWith('hub2mqtt_'))
    // Wait for the notification of the previous crash.
    await eventually('a notification', async () => (await ofOurs()).length === 1)
    world.hub.crash('com.athom.hue', 'Error: "boom" {{ 1/0 }}\n    at boom (/app/boom.js:1:2)')
    world.hub.crash('net.lindqvist.heatpump', '')
    await vi.waitFor(async () => {
      expect(await ofOurs()).toEqual(
        expect.arrayContaining([
          expect.objectContaining({
            notification_id: 'hub2mqtt_com.athom.hue',
            title: 'Lumen Lights has crashed',
            message: 'Error: "boom" {{ 1/0 }}',
          }),
          expect.objectContaining({ title: 'Heat Pump has crashed', message: 'The hub gave no reason.' }),
        ]),
      )
    }, WAIT)
    await ha.command({ type: 'call_service', domain: 'persistent_notification', service: 'dismiss_all' })
    await world.bridge.stop()
    await untilUnavailable(`${HUE}--event`)
    world.startBridge()
    await allWell()
    for (const app of ['com.athom.hue', 'net.lindqvist.heatpump']) world.hub.recover(app)
    await ha.untilState(`${HUE}--problem`, 'off')
    await ha.untilState(`${PUMP}--problem`, 'off')
    expect(await ofOurs()).toEqual([])
  })

  test('is notified of a crash in the same millisecond as another event, and not if only the name changes', async () => {
    const event = (await ha.states()).get('event.heat_pump_event')
    if (event === undefined) throw new Error('there is no event entity')
    // The state of an event entity is the time of its latest event.
    const show = (attributes: object) => ha.overwrite({ ...event, attributes: { ...event.attributes, ...attributes } })
    const ofOurs = async () =>
      (await ha.notifications()).filter(({ notification_id }) => notification_id.startsWith('hub2mqtt_'))
    await show({ event_type: 'gave_up' })
    await show({ event_type: 'crashed', message: 'Error: the latest' })
    await vi.waitFor(async () => expect(await ofOurs()).toMatchObject([{ message: 'Error: the latest' }]), WAIT)
    await ha.command({ type: 'call_service', domain: 'persistent_notification', service: 'dismiss_all' })
    await show({ event_type: 'crashed', message: 'Error: the latest', friendly_name: 'Heater' })
    await show({ event_type: 'crashed', message: 'Error: another', at: 'later' })
    await vi.waitFor(async () => expect(await ofOurs()).toMatchObject([{ message: 'Error: another' }]), WAIT)
    await ha.command({ type: 'call_service', domain: 'persistent_notification', service: 'dismiss_all' })
  })

  test('sees and changes the settings that are published', async () => {
    await ha.use('number.set_value', `${HUE}--setting_transition`, { value: 900 })
    await ha.untilState(`${HUE}--setting_transition`, '900')
    await ha.use('switch.turn_on', `${HUE}--setting_night`)
    await ha.untilState(`${HUE}--setting_night`, 'on')
    await ha.use('select.select_option', `${HUE}--setting_mode`, { option: '{{ party }}' })
    await ha.untilState(`${HUE}--setting_mode`, '{{ party }}')
    await ha.use('text.set_value', `${HUE}--setting_greeting`, { value: '42' })
    await ha.untilState(`${HUE}--setting_greeting`, '42')
    await ha.use('text.set_value', `${HUE}--setting_pin`, { value: '0815' })
    const pin = await ha.untilState(`${HUE}--setting_pin`, '0815')
    expect(pin.attributes['mode']).toBe('password')
    expect(world.hub.settings('com.athom.hue')).toMatchObject({
      pin: '0815',
      transition: 900,
      night: true,
      mode: '{{ party }}',
      greeting: '42',
    })
  })

  test('sees a text without the spaces at its ends, but sends them', async () => {
    await ha.use('text.set_value', `${HUE}--setting_greeting`, { value: ' good day ' })
    await ha.untilState(`${HUE}--setting_greeting`, 'good day')
    expect(world.hub.settings('com.athom.hue')).toMatchObject({ greeting: ' good day ' })
  })

  test('sees invalid values of settings as unknown, or as empty texts', async () => {
    const command = (name: string) => `hub2mqtt/home/app/com.athom.hue/cmd/${name}`
    const set = (name: string, text: string) => world.observer.publish(command(`set-setting/${name}`), text)
    for (const night of ['5', '"true"']) {
      await set('night', 'true')
      await ha.untilState(`${HUE}--setting_night`, 'on')
      await set('night', night)
      await ha.untilState(`${HUE}--setting_night`, 'unknown')
    }
    for (const greeting of ['5', '{"a":1}', JSON.stringify('x'.repeat(256))]) {
      await set('greeting', '"hello"')
      await ha.untilState(`${HUE}--setting_greeting`, 'hello')
      await set('greeting', greeting)
      await ha.untilState(`${HUE}--setting_greeting`, '')
    }
    await set('night', 'true')
    await ha.untilState(`${HUE}--setting_night`, 'on')
    await world.observer.publish(command('unset-setting/night'), '')
    await ha.untilState(`${HUE}--setting_night`, 'unknown')
  })

  test('can copy the templates of the documentation', async () => {
    const page = readFileSync('docs/home-assistant.md', 'utf8')
    const updates = /message: >-\n((?: {8}.*\n)+)/.exec(page)?.[1] ?? ''
    // An update of another program must not be counted.
    const other = { name: 'Other', unique_id: 'other', state_topic: 'other/state' }
    await world.observer.publish('homeassistant/update/other/config', JSON.stringify(other))
    await until('the other update', async () => {
      await world.observer.publish('other/state', '{"installed_version":"1","latest_version":"2","title":"Other"}')
      return (await ha.render("{{ states('update.other') }}")) === 'on'
    })
    world.hub.change('com.athom.hue', { updateAvailable: { version: '8.0.0' } })
    await ha.untilState(`${HUE}--update`, 'on')
    expect(await ha.render(updates)).toBe('Lumen Lights;')
    await world.observer.publish('homeassistant/update/other/config', '')
    world.hub.change('com.athom.hue', { updateAvailable: null })
    await ha.untilState(`${HUE}--update`, 'off')
    expect(await ha.render("{{ state_attr('binary_sensor.doorbell_problem', 'message') }}")).toContain('EHOST')
    expect(await ha.render("{{ states('sensor.home_hub_available_updates') }}")).toBe('0')
  })

  test('can copy the dashboard of the documentation', async () => {
    const text = readFileSync('config/home-assistant/dashboard.yaml', 'utf8')
    const cards: readonly Record<string, string>[] = parse(text).views[0].sections.flatMap(
      ({ cards }: { cards: object[] }) => cards,
    )
    const entities = cards.map(({ entity }) => entity).filter((entity) => entity !== undefined)
    const states = await ha.states()
    expect(entities.filter((entity) => !states.has(entity))).toEqual([])
    expect(entities.length).toBeGreaterThan(4)
    const contents = cards.map(({ content }) => content).filter((content) => content !== undefined)
    const [crashed = '', updates = ''] = contents
    expect(await ha.render(crashed)).toMatch(/- \*\*Doorbell\*\*:\s+.*EHOST/)
    expect((await ha.render(updates)).trim()).toBe('No updates are available.')
    world.hub.change('com.athom.hue', { updateAvailable: { version: '8.0.0' } })
    await ha.untilState(`${HUE}--update`, 'on')
    expect(await ha.render(updates)).toMatch(/- \*\*Lumen Lights\*\*:\s+7\.0\.12 → 8\.0\.0/)
    world.hub.change('com.athom.hue', { updateAvailable: null })
    await ha.untilState(`${HUE}--update`, 'off')
  })

  test('changes the log level of the bridge', async () => {
    await ha.use('select.select_option', `${BRIDGE}--log_level`, { option: 'debug' })
    await ha.untilState(`${BRIDGE}--log_level`, 'debug')
  })

  test('sees an app appear when it is installed and disappear when it is uninstalled', async () => {
    world.hub.install('fi.kivinen.sauna')
    await allWell()
    await ha.untilState(`${SAUNA}--running`, 'on')
    world.hub.uninstall('fi.kivinen.sauna')
    await allWell()
    const left = (await ha.devices()).filter(({ name }) => name === 'Sauna')
    expect(left).toEqual([])
  })

  test('loses the entities that the key no longer permits, and gets them back', async () => {
    const before = cleared().length
    world.hub.setKeys({ [KEY]: ['homey.app.readonly'] })
    await ha.use('button.press', `${HUB}--refresh`)
    await vi.waitFor(async () => {
      // Ignore disabled entities, because Home Assistant keeps them with the user's settings.
      const shown = (await ha.entities()).filter((entity) => entity.disabled_by === null)
      const left = (device: string) =>
        shown.flatMap(({ unique_id }) =>
          unique_id.startsWith(`${device}--`) ? unique_id.slice(device.length + 2) : [],
        )
      expect(left(BELL).sort()).toEqual(['event', 'problem', 'running'])
      expect(left(VACUUM).sort()).toEqual('cpu crash_count event garbage_collect problem running state'.split(' '))
    }, WAIT)
    world.hub.setKeys({ [KEY]: ['homey'] })
    await ha.use('button.press', `${HUB}--refresh`)
    await allWell()
    expect(cleared().slice(before)).toEqual([])
  })

  test('can delete one entity without losing the device', async () => {
    const { entity_id } = await ha.entity(`${BELL}--running`)
    await ha.command({ type: 'config/entity_registry/remove', entity_id })
    const others = `${BELL}--enabled`
    if (version.deleting === 'clears the device') {
      await eventually('the deletion', async () => !Object.hasOwn(await registry(), others))
    } else {
      await eventually('the deletion', async () => !Object.hasOwn(await registry(), `${BELL}--running`))
      expect(await registry()).toHaveProperty(others)
      world.hub.change('nl.vandermolen.doorbell', { author: { name: 'Somebody Else' } })
    }
    await allWell()
  })

  test('sees everything unavailable while the bridge is offline, and the same entities afterwards', async () => {
    const before = await registry()
    await world.bridge.stop()
    await untilUnavailable(`${HUE}--enabled`)
    expect((await ha.state(`${BRIDGE}--connected`))?.state).toBe('off')
    const seen = world.observer.seen.length
    world.startBridge()
    await allWell()
    await ha.untilState(`${BRIDGE}--connected`, 'on')
    expect(await registry()).toEqual(before)
    const sent = world.observer.seen.slice(seen).filter(({ topic }) => topic.startsWith('homeassistant/'))
    expect(sent.map(({ topic }) => topic)).toEqual([])
  })

  test('sees the apps unavailable while the hub is offline, but not the bridge', async () => {
    const before = await registry()
    const rebooting = world.hub.reboot({ downMs: 4000, version: '8.2.0' })
    await untilUnavailable(`${HUE}--enabled`)
    expect((await ha.state(`${HUB}--connected`))?.state).toBe('off')
    expect((await ha.state(`${BRIDGE}--connected`))?.state).toBe('on')
    await rebooting
    await ha.untilState(`${HUB}--connected`, 'on')
    await allWell()
    expect(await registry()).toEqual(before)
  })

  test('finds everything again after the broker was offline', async () => {
    const before = await registry()
    await home.broker.stop()
    await untilUnavailable(`${HUE}--enabled`)
    await home.broker.run()
    await until('the observer', () => world.observer.ready)
    await allWell()
    expect(await registry()).toEqual(before)
  })

  test('finds everything again after Home Assistant was offline', async () => {
    const before = await registry()
    await ha.stop()
    world.hub.disable('com.athom.hue')
    await ha.run()
    await allWell()
    expect(await registry()).toEqual(before)
    await ha.untilState(`${HUE}--enabled`, 'off')
    const seen = world.observer.seen.length
    const topic = `homeassistant/device/${HUE}/config`
    const since = () => world.observer.seen.slice(seen)
    await eventually('the answer to the birth message', () => since().some((message) => message.topic === topic))
    const states = since().filter((message) => /^hub2mqtt\/[a-z]+\/state$/.test(message.topic))
    expect(states.map((message) => message.topic).sort()).toEqual(['hub2mqtt/bridge/state', 'hub2mqtt/home/state'])
  })

  test('is asked about an update that was found while Home Assistant or the bridge was offline, until it is skipped', async () => {
    const update = (await ha.entity(`${HUE}--update`)).entity_id
    const question = async () =>
      (await ha.notifications()).find(({ notification_id }) => notification_id === `asked_${update}`)?.message
    const asked = () => eventually('a question', question)
    const restartBridge = async () => {
      await ha.command({ type: 'call_service', domain: 'persistent_notification', service: 'dismiss_all' })
      await world.bridge.stop()
      await untilUnavailable(`${HUE}--update`)
      world.startBridge()
      await allWell()
    }
    const answer = async (which: 'YES' | 'SKIP') => {
      const action = (await asked()).split(' ').find((word) => word.startsWith(`HUB2MQTT_${which}_`))
      const event_type = 'mobile_app_notification_action'
      await ha.command({ type: 'fire_event', event_type, event_data: { action } })
    }
    await ha.stop()
    // YAML would read this version as a number, not as a string.
    world.hub.change('com.athom.hue', { updateAvailable: { version: '8.10' } })
    await ha.run()
    expect(await asked()).toContain('From 7.0.12 to 8.10.')
    await allWell()
    await restartBridge()
    await answer('SKIP')
    await ha.untilState(`${HUE}--update`, 'off')
    await restartBridge()
    expect(await question()).toBeUndefined()
    world.hub.change('com.athom.hue', { updateAvailable: { version: '8.11' } })
    const installs = world.requestCount('installFromAppStore')
    await answer('YES')
    await eventually('the install', () => world.requestCount('installFromAppStore') === installs + 1)
    world.hub.change('com.athom.hue', { version: '7.0.12', updateAvailable: null })
    await ha.untilState(`${HUE}--update`, 'off')
  })

  test('finds no entries about these tests in the log', () => {
    const expectable = [
      // Messages because the broker was offline.
      /Disconnected from MQTT server|Failed to connect to MQTT server|Error returned from MQTT server: The connection was lost/,
      // The message about an entity that a user has deleted.
      /Although entity binary_sensor\.doorbell_running was removed from Home Assistant, it will be added again/,
      // Home Assistant clears the topic of a removed device for each disabled entity, and receives its own message.
      new RegExp(`No device components to cleanup for (${BELL}|${SAUNA}),`),
    ]
    expect(ha.complaints().filter((line) => !expectable.some((known) => known.test(line)))).toEqual([])
    expect(ha.lines.filter((line) => /(WARNING|ERROR) .*\[homeassistant\.helpers\.template/.test(line))).toEqual([])
  })

  test('can distinguish the same app of two hubs, keeps the entity ids, and sees a removed hub disappear', async () => {
    const before = await registry()
    await using cabin = await startCabin()
    await world.restart({ HUB_NAME: 'cabin', HUB_URL: cabin.url, HUB_API_KEY: KEY })
    await eventually('the other hub', async () =>
      (await ha.entities()).some(({ unique_id }) => unique_id === `${CABIN}--com_athom_hue--enabled`),
    )
    await eventually('the name', async () => (await ha.device(HUE)).name === 'Lumen Lights (Home)')
    expect((await ha.device(`${CABIN}--com_athom_hue`)).name).toBe('Lumen Lights (Cabin)')
    expect(await registry()).toMatchObject(before)
    expect((await ha.entity(`${CABIN}--com_athom_hue--enabled`)).entity_id).toBe('switch.lumen_lights_cabin')
    await world.restart()
    await allWell()
    await eventually('the name', async () => (await ha.device(HUE)).name === 'Lumen Lights')
    expect(await registry()).toEqual(before)
  })

  test('keeps every entity when the discovery format changes, and changes back', async () => {
    const before = await registry()
    const complaints = ha.complaints().length
    for (const form of ['component', 'device']) {
      await world.bridge.stop()
      await untilUnavailable(`${BELL}--enabled`)
      world.startBridge({ DISCOVERY_FORMAT: form })
      await allWell()
      await vi.waitFor(async () => {
        const held = [...(await retainedOn(home.broker.port)).keys()].filter((topic) => topic.endsWith('/config'))
        expect(held.filter((topic) => topic.startsWith('homeassistant/device/') !== (form === 'device'))).toEqual([])
      }, WAIT)
      await allWell()
      expect(await registry()).toEqual(before)
    }
    // Ignore the message that Home Assistant logs for each device after it has moved the components to other topics.
    const harmless = (line: string) => line.includes('No device components to cleanup for hub2mqtt-')
    expect(
      ha
        .complaints()
        .slice(complaints)
        .filter((line) => !harmless(line)),
    ).toEqual([])
  })

  test('finds the entity ids of a hub again that was replaced while the bridge was offline', async () => {
    await allWell()
    const before = await registry()
    await world.bridge.stop()
    await world.hub.reboot({ id: 'replacement' })
    // The bridge reads this list twice before it clears the devices of the former hub.
    world.hub.uninstall('com.parkstreet.weather')
    world.startBridge()
    const replaced = (uniqueId: string) => uniqueId.replace(HUB.slice('hub2mqtt--'.length), 'replacement')
    for (const uniqueId of [`${HUE}--enabled`, `${HUE}--problem`, `${HUB}--connected`, `${BRIDGE}--last_start`]) {
      const entity = () => ha.entity(replaced(uniqueId)).catch(() => undefined)
      expect((await eventually(uniqueId, entity)).entity_id).toBe(before[uniqueId])
    }
  })
})

/** Encodes an app's id for the ids in Home Assistant, independently of the code under test. */
function byHand(id: string): string {
  return id
    .replaceAll('_', '-5F')
    .replaceAll(/-(?!5F)/g, '-2D')
    .replaceAll('.', '_')
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1).padStart(6)} s`
}
