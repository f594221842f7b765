import { tidy } from '../base/text.ts'
import type { PublishedSetting } from '../config/settings.ts'
import { encodeId } from '../contract/discovery.ts'
import { EVENT_TYPES, GUARD_EVENT_TYPES } from '../contract/events.ts'
import { REASONS } from '../contract/guard.ts'
import { APP_STATES } from '../hub/app.ts'
import { humanise } from './device.ts'
import { type EntityOf, entitiesOf } from './entity.ts'
import * as jinja from './templates.ts'

/** The state payloads of switches, and of binary sensors with a template. */
const WORDS = { on: 'ON', off: 'OFF' } as const
export const DIAGNOSTIC = { platform: 'sensor', category: 'diagnostic' } as const
export const HIDDEN = { ...DIAGNOSTIC, enabled: false } as const
export const PROBLEM = { platform: 'binary_sensor', deviceClass: 'problem', ...WORDS } as const
const SWITCH = { platform: 'switch', ...WORDS } as const
const HIDDEN_BUTTON = { platform: 'button', category: 'config', enabled: false } as const
const APP_SENSOR = { ...HIDDEN, reads: 'app' } as const
const OF_DEVICES = { from: 'getDevices', reads: 'appLinks' } as const
const GUARDED = { when: 'guard', reads: 'guard' } as const
const GUARD_SENSOR = { ...HIDDEN, ...GUARDED } as const

export const APP_ENTITIES = entitiesOf('app', [
  {
    ...SWITCH,
    key: 'enabled',
    name: null,
    icon: 'mdi:puzzle-outline',
    reads: 'app',
    template: jinja.flagOf('enabled'),
    sends: 'enabled',
    doc: 'Enables and disables the app.',
  },
  {
    key: 'running',
    platform: 'binary_sensor',
    name: 'Running',
    deviceClass: 'running',
    reads: 'app',
    template: jinja.onOff('state', "x == 'running'"),
    ...WORDS,
    doc: 'Whether the app is running.',
  },
  {
    ...PROBLEM,
    key: 'problem',
    name: 'Problem',
    reads: 'app',
    template: jinja.flagOf('crashed'),
    attributes: jinja.messageOf('crash_message', { count: 'crash_count' }),
    doc: 'On after a crash, with the attributes `message` (one line), `stack` (the other lines) and `count`.',
  },
  {
    // Disabled by default, because most users need only the entities Running and Problem.
    ...APP_SENSOR,
    key: 'state',
    name: 'State',
    icon: 'mdi:state-machine',
    template: jinja.fieldOf('state'),
    shows: { options: APP_STATES },
    doc: 'Starting, running, stopping, stopped or crashed.',
  },
  {
    key: 'update',
    platform: 'update',
    name: 'Update',
    reads: 'appUpdate',
    sends: 'install',
    doc: 'The installed and the newest version; installs the newest version, and shows the progress. If the hub does not report the newest version, the entity shows when the update was found. For an app from the store, it links to the store page.',
  },
  {
    key: 'event',
    platform: 'event',
    name: 'Event',
    icon: 'mdi:bell-outline',
    reads: 'appEvent',
    template: jinja.withMessage('message'),
    types: EVENT_TYPES,
    guardTypes: GUARD_EVENT_TYPES,
    doc: 'The events of the app, with the keys of each event as attributes; `message` is the first line of the message, `stack` contains the other lines.',
  },
  {
    key: 'restart',
    platform: 'button',
    name: 'Restart',
    icon: 'mdi:restart',
    sends: 'restart',
    doc: 'Restarts the app.',
  },
  {
    ...HIDDEN_BUTTON,
    key: 'garbage_collect',
    name: 'Free memory',
    icon: 'mdi:broom',
    sends: 'garbage-collect',
    doc: 'Makes the app free memory (older hubs).',
  },
  {
    ...SWITCH,
    key: 'autoupdate',
    name: 'Automatic updates',
    category: 'config',
    enabled: false,
    icon: 'mdi:update',
    reads: 'app',
    template: jinja.flagOf('autoupdate'),
    sends: 'autoupdate',
    doc: 'Whether the hub updates the app automatically.',
  },
  {
    ...APP_SENSOR,
    key: 'cpu',
    name: 'CPU',
    icon: 'mdi:cpu-64-bit',
    template: jinja.fieldOf('cpu_percent'),
    shows: { stateClass: 'measurement', unit: '%' },
    doc: 'CPU usage in per cent of one core.',
  },
  {
    ...APP_SENSOR,
    key: 'memory',
    name: 'Memory',
    template: jinja.mebibytesOf('memory_bytes'),
    shows: { stateClass: 'measurement', unit: 'MiB', decimals: 1, deviceClass: 'data_size' },
    doc: 'Memory in MiB.',
  },
  {
    // Disabled by default, because the entity Problem has this number as an attribute.
    ...APP_SENSOR,
    key: 'crash_count',
    name: 'Crashes',
    icon: 'mdi:counter',
    template: jinja.fieldOf('crash_count'),
    shows: { stateClass: 'total_increasing' },
    doc: 'How often the app has crashed, as counted by the hub.',
  },
  {
    ...APP_SENSOR,
    key: 'channel',
    name: 'Channel',
    icon: 'mdi:source-branch',
    template: jinja.textOf('channel'),
    doc: 'The update channel.',
  },
  {
    ...APP_SENSOR,
    key: 'origin',
    name: 'Origin',
    icon: 'mdi:store-outline',
    template: jinja.textOf('origin'),
    doc: 'The source of the app.',
  },
  {
    ...PROBLEM,
    key: 'devices_away',
    name: 'Devices unavailable',
    ...OF_DEVICES,
    template: jinja.onOff('devices_unavailable', 'x > 0'),
    attributes: jinja.attributesOf({ devices: 'devices', unavailable: 'devices_unavailable' }),
    doc: 'Whether any device of the app is unavailable, if the API key has `homey.device.readonly`. The attributes contain the number of all devices (`devices`) and of unavailable ones (`unavailable`).',
  },
  {
    ...HIDDEN,
    key: 'devices_unavailable',
    name: 'Unavailable devices',
    ...OF_DEVICES,
    template: jinja.fieldOf('devices_unavailable'),
    shows: { stateClass: 'measurement' },
    doc: 'How many devices of the app are unavailable.',
  },
  {
    ...HIDDEN,
    key: 'flows_broken',
    name: 'Broken flows',
    from: 'getFlows',
    reads: 'appLinks',
    template: jinja.fieldOf('flows_broken'),
    shows: { stateClass: 'measurement' },
    doc: 'How many of the flows that use the app are broken, if the API key has `homey.flow.readonly`.',
  },
  {
    ...SWITCH,
    key: 'guard',
    name: 'Guard',
    category: 'config',
    icon: 'mdi:shield-half-full',
    ...GUARDED,
    template: jinja.onOff('state', "x != 'off'"),
    sends: 'guard',
    doc: 'Whether the guardian restarts the app. Exists only if the guardian is on.',
  },
  {
    ...GUARD_SENSOR,
    key: 'last_crash_reason',
    name: 'Last crash reason',
    icon: 'mdi:heart-broken-outline',
    template: jinja.crashReasonOf('last_crash'),
    // Home Assistant reserves the word `unknown`, so `other` replaces it.
    shows: {
      options: ['none', ...REASONS.filter((one) => one !== 'unknown' && one !== 'devices_unavailable'), 'other'],
    },
    doc: 'Why the app last crashed; `none` before the first crash. Exists only if the guardian is on.',
  },
  {
    ...GUARD_SENSOR,
    key: 'guard_restarts',
    name: 'Restarts by the guardian',
    icon: 'mdi:shield-refresh-outline',
    template: jinja.fieldOf('restarts'),
    shows: { stateClass: 'total_increasing' },
    doc: 'How often the guardian has restarted the app. Exists only if the guardian is on.',
  },
  {
    ...GUARD_SENSOR,
    key: 'memory_trend',
    name: 'Memory trend',
    icon: 'mdi:trending-up',
    template: jinja.mebibytesOf('memory_trend_bytes_per_hour'),
    shows: { stateClass: 'measurement', unit: 'MiB/h' },
    doc: "How fast the app's memory grows. Exists only if the guardian is on.",
  },
  {
    ...HIDDEN_BUTTON,
    key: 'guard_snooze',
    name: 'Snooze guard',
    when: 'guard',
    sends: 'guard',
    press: '{"snooze":"1h"}',
    doc: 'Snoozes the guardian for an hour, during which it only monitors the app. Exists only if the guardian is on.',
  },
  {
    ...HIDDEN_BUTTON,
    key: 'guard_resume',
    name: 'Run again',
    when: 'guard',
    sends: 'guard',
    press: 'ON',
    doc: 'Lets the guardian restart the app again, with a new count, after the guardian gave up or was snoozed. Exists only if the guardian is on.',
  },
])

export function settingEntities(settings: ReadonlyMap<string, PublishedSetting> | undefined): EntityOf<'app'>[] {
  return [...(settings ?? [])].map(([name, setting]) => settingEntity(name, setting))
}

function settingEntity(name: string, setting: PublishedSetting): EntityOf<'app'> {
  const common = {
    device: 'app',
    key: `setting_${encodeId(name)}`,
    name: tidy(setting.name) ?? tidy(humanise(name)) ?? 'Setting',
    category: 'config',
    icon: 'mdi:tune',
    reads: 'setting',
    sends: 'set-setting',
    setting: name,
    doc: 'A setting that `settings.publish` names.',
  } as const
  switch (setting.type) {
    case 'switch':
      return { ...common, platform: 'switch', template: jinja.WHOLE_FLAG, on: 'true', off: 'false' }
    case 'number': {
      const { min, max, step } = setting
      const template = jinja.wholeNumber(min, max)
      return { ...common, platform: 'number', template, min, max, ...(step !== undefined && { step }) }
    }
    case 'select': {
      const { options } = setting
      return { ...common, platform: 'select', template: jinja.wholeWord(options), options, sendsAs: jinja.SENT_AS_TEXT }
    }
    case 'text':
      return { ...common, platform: 'text', template: jinja.WHOLE_TEXT, sendsAs: jinja.SENT_AS_TEXT }
    case 'password':
      return { ...common, platform: 'text', template: jinja.WHOLE_TEXT, sendsAs: jinja.SENT_AS_TEXT, mode: 'password' }
  }
}
