import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { decodeId, encodeId, objectIdOf, parseDiscoveryTopic } from '../../src/contract/discovery.ts'
import { PUBLICATIONS } from '../../src/contract/publications.ts'
import { ENTITIES } from '../../src/home-assistant/entities.ts'
import { commandOf } from '../../src/home-assistant/entity.ts'
import { type AppPatch, patchApp } from '../../src/hub/app.ts'
import { anyText } from '../support/any-text.ts'
import { FACTS, messages, type Wish } from './support/fakes.ts'
import { faultsOf, faultsOfUpdate } from './validate.ts'

/** The reads on which some entities depend, and which need additional permissions. */
const EVIDENCE = ENTITIES.flatMap(({ from = [] }) => from)

const HOSTILE_NAMES = [
  '"<b>&\'',
  '😀 👩‍👩‍👧‍👦',
  'x'.repeat(300),
  '😀'.repeat(300),
  '',
  ' \n\t ',
  '{{ 1/0 }} {% raw %} {# #}',
  '\ud800 lone',
  'null',
  '__proto__',
  'ÄÖ_-.+#/~',
  '日本語',
]
const HOSTILE_IDS = [
  'com.athom.hue',
  'a/b',
  '+',
  '#',
  '',
  '.',
  '..',
  'com.a_b',
  'com_a.b',
  '-2E',
  'ü 😀',
  'x'.repeat(256),
]
const SETTINGS = `settings: { publish: { com.athom.hue: { a: switch, b: text, "näme/ +#": text, " ": switch,
  c: { type: number, min: -1, max: 0.5, step: 0.00001, name: "<b>{{ 1 }}" },
  p: password,
  d: { type: select, options: ['"', "{{ x }}", "%}", "😀", "\\\\"], name: "  " } } } }`
const settings = loadConfig({
  env: { HUB2MQTT_HUB_URL: 'http://hub', HUB2MQTT_HUB_API_KEY: 'x' },
  file: 'x.yaml',
  readFile: () => SETTINGS,
}).config.settings.publish.get('com.athom.hue')
const withSettings: Wish = settings === undefined ? {} : { settings }

const FORMS = ['device', 'component'] as const

const messageOf = (device: string, wish: Wish = {}) => {
  const [, payload = ''] = [...messages('device', wish)].find(([topic]) => topic.includes(device)) ?? []
  return JSON.parse(payload)
}
const components = (wish: Wish = {}, device = '--com_athom_hue') => messageOf(device, wish).components

describe.each(FORMS)('Home Assistant accepts every message as %s', (form) => {
  const cases: [string, Wish][] = [
    ...HOSTILE_NAMES.map((name): [string, Wish] => [
      `a name and author ${JSON.stringify(name).slice(0, 30)}`,
      { app: { name, author: name, version: name } },
    ]),
    ...HOSTILE_IDS.map((id): [string, Wish] => [
      `the id ${JSON.stringify(id).slice(0, 30)}`,
      // For the longest id, leave out the guardian and the evidence, to keep the device within the limit of this check.
      { app: { id }, ...(id.length >= 200 && { guarded: false, missing: EVIDENCE }) },
    ]),
    ['nothing known', { app: { name: null, version: null, author: null } }],
    ['a newer hub', { missing: ['speak', 'garbageCollectApp'] }],
    ['nothing allowed', { deny: ['*'] }],
    ['settings of each type', withSettings],
    ['an unknown firmware', { facts: { ...FACTS, firmware: null } }],
    ['a strange hub', { facts: { ...FACTS, name: 'x-_1', id: 'ü/+#', firmware: '', url: 'https://[::1]:8443/a?b' } }],
    ['several hubs', { severalHubs: true, app: { name: 'x'.repeat(300) } }],
    ['a deep base topic', { base: 'a/b c/😀' }],
  ]

  test.each(cases)('with %s', (_, wish) => {
    const all = messages(form, wish)
    expect(all.size).toBeGreaterThanOrEqual(3)
    for (const [topic, payload] of all) expect(faultsOf(topic, payload), topic).toEqual([])
  })
})

describe('discovery', () => {
  test('offers everything for a key with all permissions', () => {
    const ofApps = ENTITIES.filter(({ device }) => device === 'app').map(({ key }) => key)
    const triggers = ['crashed', 'updated', 'command_failed', 'gave_up'].map((type) => `trigger_${type}`)
    expect(Object.keys(components())).toEqual([...ofApps, ...triggers])
    expect(Object.keys(components(withSettings))).toHaveLength(ofApps.length + 4 + 7)
  })

  test('offers nothing that the hub does not have', () => {
    expect(components({ missing: ['garbageCollectApp'] })).not.toHaveProperty('garbage_collect')
    expect(components({ missing: ['speak'] }, 'hub2mqtt--abc123/')).not.toHaveProperty('speak')
  })

  test('offers nothing that configuration refuses', () => {
    const without = components({ deny: ['restart', 'enabled'] })
    expect(without).not.toHaveProperty('restart')
    expect(without).not.toHaveProperty('enabled')
    expect(components({ deny: ['disable'] })).not.toHaveProperty('enabled')
    expect(components({ deny: ['bridge/log-level'] }, 'bridge')).not.toHaveProperty('log_level')
  })

  test('offers no setting if settings cannot be read', () => {
    const unread = { ...withSettings, missing: ['getAppSettings'] as const }
    expect(Object.keys(components(unread))).toEqual(Object.keys(components()))
  })

  test('offers existing commands only, each with its topic', () => {
    for (const entity of ENTITIES) expect(commandOf(entity) === undefined, entity.key).toBe(!('sends' in entity))
    for (const entity of ENTITIES.filter(({ platform }) => platform === 'button')) {
      const press = 'press' in entity ? String(entity.press) : 'PRESS'
      expect(() => commandOf(entity)?.payload.read(press).input(), entity.key).not.toThrow()
    }
    expect(components(withSettings)['setting_n-C3-A4me-2F-20-2B-23'].command_topic).toBe(
      'hub2mqtt/home/app/com.athom.hue/cmd/set-setting/n%C3%A4me%2F%20%2B%23',
    )
  })
})

describe('the presentation', () => {
  const deviceOf = (part: string, wish: Wish = {}) => messageOf(part, wish).device

  test('keeps the title of an update when the device message changes: it is part of that message too', () => {
    expect(components({ app: { name: ' Philips\n Hue ' } }).update.title).toBe('Philips Hue')
    expect(components({ app: { name: null } }).update).not.toHaveProperty('title')
  })

  test('names the manufacturer of hub and bridge', () => {
    expect(deviceOf('bridge')).toMatchObject({ manufacturer: 'hub2mqtt' })
    expect(deviceOf('hub2mqtt--abc123/')).toMatchObject({ manufacturer: 'Athom', model: 'Homey' })
    const other = deviceOf('hub2mqtt--abc123/', { facts: { ...FACTS, api: 'managers' } })
    expect(other).toMatchObject({ model: 'Hub' })
    expect(other).not.toHaveProperty('manufacturer')
  })

  test('distinguishes an app from other devices, and links to its page in the store', () => {
    expect(deviceOf('--com_athom_hue').model).toBe('Hub app')
    const inStore = components({ app: { origin: 'appstore' } }).update
    expect(inStore.release_url).toBe('https://homey.app/a/com.athom.hue')
    for (const origin of [null, 'devkit_run', 'devkit_install']) {
      expect(components({ app: { origin } }).update).not.toHaveProperty('release_url')
    }
    const odd = components({ app: { id: '../a b?#', origin: 'appstore' } }, '--__-2Fa')
    expect(odd.update.release_url).toBe('https://homey.app/a/..%2Fa%20b%3F%23')
  })

  test('links bridge and apps to the page, and gives apps their icon, if the address is known', () => {
    const publicUrl = 'https://home.example.org/hub2mqtt'
    expect(deviceOf('bridge', { publicUrl }).configuration_url).toBe(`${publicUrl}/#/bridge`)
    expect(deviceOf('--com_athom_hue', { publicUrl }).configuration_url).toBe(`${publicUrl}/#/app/home/com.athom.hue`)
    const { enabled, update, restart } = components({ publicUrl })
    const picture = `${publicUrl}/api/hubs/home/apps/com.athom.hue/icon`
    expect([enabled.entity_picture, update.entity_picture]).toEqual([picture, picture])
    expect(restart).not.toHaveProperty('entity_picture')
    expect(deviceOf('hub2mqtt--abc123/', { publicUrl }).configuration_url).toBe('http://hub.local')
    expect(deviceOf('bridge')).not.toHaveProperty('configuration_url')
    expect(components().enabled).not.toHaveProperty('entity_picture')
  })

  test('has buttons that snooze and resume the guardian of an app, disabled by default', () => {
    const { guard_snooze, guard_resume } = components()
    const common = { command_topic: 'hub2mqtt/home/app/com.athom.hue/cmd/guard', enabled_by_default: false }
    expect(guard_snooze).toMatchObject({ ...common, payload_press: '{"snooze":"1h"}' })
    expect(guard_resume).toMatchObject({ ...common, payload_press: 'ON' })
  })

  test('has the reason of the last crash as an enumeration, which includes none', () => {
    expect(components().last_crash_reason.options).toEqual(
      'none exception cpu_limit memory_limit killed unloaded silent probe schedule other'.split(' '),
    )
  })

  test('enables seven entities of an app by default, including the guardian, and gives the app itself an icon', () => {
    type Shown = { readonly unique_id?: string; readonly enabled_by_default?: boolean }
    const shown = Object.entries<Shown>(components({ missing: EVIDENCE }))
      .filter(([, component]) => component.unique_id !== undefined && component.enabled_by_default !== false)
      .map(([key]) => key)
    expect(shown).toEqual(['enabled', 'running', 'problem', 'update', 'event', 'restart', 'guard'])
    expect(components().enabled.icon).toMatch(/^mdi:/)
    expect(components()).not.toHaveProperty('version')
  })

  test('hides a setting that is a password while it is typed', () => {
    expect(components({ settings: new Map([['pin', { type: 'password' }]]) }).setting_pin).toMatchObject({
      platform: 'text',
      mode: 'password',
    })
    expect(components({ settings: new Map([['pin', { type: 'text' }]]) }).setting_pin).not.toHaveProperty('mode')
  })

  test.each([
    [undefined, 0.001],
    [0.00001, 0.001],
    [5, 5],
  ])('accepts decimals in a number, unless its setting has a larger step: %s becomes %d', (step, sent) => {
    const setting = { type: 'number', min: 0, max: 100, ...(step !== undefined && { step }) } as const
    expect(components({ settings: new Map([['x', setting]]) }).setting_x.step).toBe(sent)
  })

  test('shows an option as unknown if Home Assistant would trim or ignore it', () => {
    const setting = { type: 'select', options: ['', ' ', ' low', 'low\n', 'high'] } as const
    expect(components({ settings: new Map([['x', setting]]) }).setting_x).toMatchObject({
      options: setting.options,
      value_template: `{{ value_json if value_json in ["high"] else 'None' }}`,
    })
  })
})

describe('an identity', () => {
  test('survives a rename of the hub, of the app, and another base topic', () => {
    const ids = (wish: Wish) =>
      [...messages('component', wish)].map(([topic, payload]) => [topic, JSON.parse(payload).unique_id])
    const renamed = ids({
      base: 'x/y',
      facts: { ...FACTS, name: 'attic', url: 'http://other' },
      app: { name: 'Other' },
    })
    expect(renamed).toEqual(ids({}))
  })

  test('is unique for every id, and can be decoded', () => {
    fc.assert(
      fc.property(anyText(), anyText(), (hubId, app) => {
        fc.pre(hubId.isWellFormed() && app.isWellFormed())
        expect(encodeId(app)).toMatch(/^[A-Za-z0-9_-]+$/)
        expect(decodeId(encodeId(app))).toBe(app)
        for (const owner of [
          { kind: 'app', hubId, app },
          { kind: 'hub', hubId },
          { kind: 'bridge', hubId },
        ] as const) {
          const objectId = objectIdOf(owner)
          const device = parseDiscoveryTopic(`a/b/device/${objectId}/config`)
          expect(device).toEqual({ prefix: 'a/b', form: 'device', objectId, owner })
          const component = parseDiscoveryTopic(`a/b/switch/hub2mqtt/${objectId}--setting_${encodeId(app)}/config`)
          expect(component).toEqual({ prefix: 'a/b', form: 'component', objectId, owner })
        }
      }),
    )
  })

  test.each([
    'homeassistant/device/zigbee/config',
    'homeassistant/device/hub2mqtt/config',
    'homeassistant/device/hub2mqtt--a--b--c/config',
    'homeassistant/device/hub2mqtt--a_-b/config',
    'homeassistant/device/hub2mqtt--a/state',
    'homeassistant/switch/hub2mqtt/x/config',
    'homeassistant/switch/other/hub2mqtt--a--b--c/config',
  ])('is not decoded from a topic of another program: %s', (topic) => {
    expect(parseDiscoveryTopic(topic)).toBeUndefined()
  })
})

describe('the state of an update entity', () => {
  const render = (patch: AppPatch, more: Partial<Parameters<typeof PUBLICATIONS.appUpdate.render>[0]> = {}) => {
    const app = patchApp(undefined, 'x', { name: 'X', ...patch })
    return JSON.stringify(
      PUBLICATIONS.appUpdate.render({ app, installing: false, foundAt: '2026-11-23 13:05', ...more }),
    )
  }

  test.each([
    ['no update', { version: '1.0', update_available: false }, { installed_version: '1.0', latest_version: '1.0' }],
    [
      'a known one',
      { version: '1.0', update_available: true, latest_version: '2.0' },
      { installed_version: '1.0', latest_version: '2.0' },
    ],
    [
      'one without details',
      { version: '1.0', update_available: true },
      { installed_version: '1.0', latest_version: 'newer version, found 2026-11-23 13:05 UTC' },
    ],
    [
      'an app from the store',
      { version: '1.0', update_available: false, origin: 'appstore' },
      { installed_version: '1.0', latest_version: '1.0', release_url: 'https://homey.app/a/x' },
    ],
    ['an app from elsewhere', { version: null, origin: 'devkit_install' }, {}],
    ['nothing known', { version: null }, {}],
  ])('with %s has only keys that Home Assistant supports', (_, patch, versions) => {
    expect(faultsOfUpdate(render(patch))).toEqual([])
    expect(JSON.parse(render(patch))).toEqual({ title: 'X', in_progress: false, update_percentage: null, ...versions })
    expect(faultsOfUpdate(render(patch, { installing: true }))).toEqual([])
    expect(JSON.parse(render(patch, { installing: true }))).toMatchObject({ in_progress: true })
  })

  test('has the changelog of the version that it shows as the newest, and of no other', () => {
    const said = { version: '1.0', update_available: true, latest_version: '2.0' }
    const shown = (patch: AppPatch, release: { version: string; changelog: string | null }) =>
      render({ ...said, ...patch }, { release })
    const release = { version: '2.0', changelog: 'Shines brighter' }
    expect(faultsOfUpdate(shown({}, release))).toEqual([])
    expect(JSON.parse(shown({}, release))).toMatchObject({ latest_version: '2.0', release_summary: 'Shines brighter' })
    for (const without of [
      shown({}, { ...release, version: '2.1' }),
      shown({}, { ...release, changelog: null }),
      shown({ version: '2.0', update_available: false, latest_version: null }, release),
    ]) {
      expect(JSON.parse(without)).not.toHaveProperty('release_summary')
    }
  })

  test('shows the progress of an install by the state of the app', () => {
    const steps = (
      [
        ['running', true],
        ['stopping', true],
        ['stopped', true],
        ['starting', false],
        ['running', false],
      ] as const
    ).map(([state, update_available]) =>
      JSON.parse(render({ version: '1.0', state, update_available }, { installing: true })),
    )
    expect(steps.map(({ update_percentage }) => update_percentage)).toEqual([10, 40, 40, 70, 90])
  })
})

test('the largest device stays far below the limit of Home Assistant', () => {
  const largest = (wish: Wish) => Math.max(...[...messages('device', wish).values()].map((payload) => payload.length))
  expect(largest({ ...withSettings, missing: EVIDENCE })).toBeLessThan(13 * 1024)
  // With all permissions, the devices have more entities.
  expect(largest(withSettings)).toBeLessThan(14 * 1024)
})

describe('while the guardian is off', () => {
  test('none of its entities is offered, and none of its events is named', () => {
    const without = components({ guarded: false })
    const buttons = ['guard_snooze', 'guard_resume', 'trigger_gave_up']
    for (const key of ['guard', 'last_crash_reason', 'guard_restarts', 'memory_trend', ...buttons]) {
      expect(components()).toHaveProperty(key)
      expect(without).not.toHaveProperty(key)
    }
    expect(components().event.event_types).toContain('gave_up')
    expect(without.event.event_types).not.toContain('gave_up')
    expect(components({ guarded: false }, 'hub2mqtt--abc123/')).not.toHaveProperty('attention')
  })
})
