/** Home Assistant's rules for discovery, independent of the code under test. Functions return the faults as strings. */

type Json = Readonly<Record<string, unknown>>

const ROOT = ['device', 'origin', 'components', 'availability', 'availability_mode', 'state_topic', 'qos']
const DEVICE = [
  ...['identifiers', 'name', 'manufacturer', 'model', 'model_id', 'sw_version', 'serial_number', 'hw_version'],
  ...['suggested_area', 'configuration_url', 'via_device'],
]
const ORIGIN = ['name', 'sw_version', 'support_url']
const UPDATE_STATE = [
  ...['installed_version', 'latest_version', 'title', 'release_summary', 'release_url', 'entity_picture'],
  ...['in_progress', 'update_percentage'],
]
const COMMON = [
  ...['platform', 'unique_id', 'name', 'entity_category', 'enabled_by_default', 'icon', 'qos'],
  ...['availability', 'device', 'origin', 'availability_mode', 'entity_picture'],
]
const READS = ['state_topic', 'value_template']
const ATTRIBUTES = ['json_attributes_topic', 'json_attributes_template']
const SENDS = ['command_topic', 'command_template']

interface Rules {
  readonly required: readonly string[]
  readonly allowed: readonly string[]
}

const PLATFORMS: Readonly<Record<string, Rules>> = {
  sensor: {
    required: ['state_topic'],
    allowed: [
      ...[...READS, ...ATTRIBUTES, 'device_class', 'state_class', 'unit_of_measurement', 'options'],
      'suggested_display_precision',
    ],
  },
  binary_sensor: {
    required: ['state_topic', 'payload_on', 'payload_off'],
    allowed: [...READS, ...ATTRIBUTES, 'device_class', 'payload_on', 'payload_off'],
  },
  switch: {
    required: ['state_topic', 'command_topic', 'payload_on', 'payload_off'],
    allowed: [...READS, 'command_topic', 'payload_on', 'payload_off'],
  },
  button: { required: ['command_topic', 'payload_press'], allowed: ['command_topic', 'payload_press'] },
  update: {
    required: ['state_topic', 'command_topic', 'payload_install'],
    allowed: ['state_topic', 'command_topic', 'payload_install', 'title', 'release_url'],
  },
  event: { required: ['state_topic', 'event_types'], allowed: [...READS, 'event_types'] },
  notify: { required: ['command_topic'], allowed: SENDS },
  text: { required: ['command_topic', 'max'], allowed: [...READS, ...SENDS, 'min', 'max', 'mode'] },
  select: { required: ['state_topic', 'command_topic', 'options'], allowed: [...READS, ...SENDS, 'options'] },
  number: {
    required: ['state_topic', 'command_topic', 'min', 'max'],
    allowed: [...READS, 'command_topic', 'min', 'max', 'step', 'mode'],
  },
}

/** A trigger for automations is not an entity, and has neither an id nor a name. */
const TRIGGER: Rules = {
  required: ['automation_type', 'type', 'subtype', 'topic', 'payload', 'value_template'],
  allowed: ['automation_type', 'type', 'subtype', 'topic', 'payload', 'value_template', 'platform', 'qos'],
}

export function faultsOf(topic: string, payload: string): string[] {
  const device = /^[^+#]+\/device\/([a-zA-Z0-9_-]+)\/config$/.exec(topic)
  const component = /^[^+#]+\/(\w+)\/([a-zA-Z0-9_-]+)\/([a-zA-Z0-9_-]+)\/config$/.exec(topic)
  if (device === null && component === null) return [`${topic} is not a discovery topic`]
  if (Buffer.byteLength(payload) > 16 * 1024) return [`${topic} has ${Buffer.byteLength(payload)} bytes`]
  const root: Json = JSON.parse(payload)
  if (device !== null) return faultsOfDevice(root)
  const platform = component?.[1] ?? ''
  return [...faultsOfComponent('', { platform, ...root }), ...faultsOfShared(root)]
}

function faultsOfDevice(root: Json): string[] {
  const components = Object.entries(objectAt(root, 'components'))
  const ids = components
    .map(([, component]) => Object(component))
    .filter(({ platform }) => platform !== 'device_automation')
    .map(({ unique_id }) => unique_id)
  return [
    ...unknownKeys('root', root, ROOT),
    ...faultsOfShared(root),
    ...(components.length === 0 ? ['there are no components'] : []),
    ...(new Set(ids).size < ids.length ? ['a unique_id occurs twice'] : []),
    ...components.flatMap(([key, component]) => faultsOfComponent(key, Object(component))),
    ...components.filter(([key]) => /\s/.test(key)).map(([key]) => `the key ${key} has a blank`),
  ]
}

/** Checks the fields that a device and a single component have in common. */
function faultsOfShared(root: Json): string[] {
  const device = objectAt(root, 'device')
  const origin = objectAt(root, 'origin')
  return [
    ...unknownKeys('device', device, DEVICE),
    ...unknownKeys('origin', origin, ORIGIN),
    ...texts('origin', origin, ['name'], 255),
    ...texts('device', device, ['name'], 255),
    ...texts(
      'device',
      device,
      Object.keys(device).filter((key) => key !== 'identifiers'),
      255,
    ),
    ...(Array.isArray(device['identifiers']) && device['identifiers'].length > 0 ? [] : ['device has no identifiers']),
    ...faultsOfAvailability(root['availability']),
    ...('availability_mode' in root && root['availability_mode'] !== 'all' ? ['availability_mode is not all'] : []),
    ...(URL.canParse(String(device['configuration_url'] ?? 'http://x')) ? [] : ['configuration_url is no URL']),
  ]
}

function faultsOfComponent(key: string, component: Json): string[] {
  const platform = String(component['platform'])
  if (platform === 'device_automation') return faultsOfTrigger(component).map((fault) => `${key}: ${fault}`)
  const rules = PLATFORMS[platform]
  if (rules === undefined) return [`${key}: no platform ${platform}`]
  const faults = [
    ...unknownKeys(platform, component, [...COMMON, ...rules.allowed]),
    ...rules.required.filter((wanted) => !(wanted in component)).map((wanted) => `${platform} has no ${wanted}`),
    ...texts(platform, component, ['unique_id'], 2048),
    ...faultsOfCommon(platform, component),
    ...faultsOfTopics(component),
    ...('availability' in component ? faultsOfAvailability(component['availability']) : []),
    ...faultsOfPlatform(platform, component),
  ]
  return faults.map((fault) => `${key}: ${fault}`)
}

function faultsOfTrigger(component: Json): string[] {
  // Leave out the fields that `faultsOfShared` checks in the message of a single trigger.
  const { device, origin, availability, availability_mode, ...own } = component
  return [
    ...unknownKeys('trigger', own, TRIGGER.allowed),
    ...texts('trigger', own, TRIGGER.required, 2048),
    ...(own['automation_type'] === 'trigger' ? [] : ['automation_type is not trigger']),
    ...faultsOfTopics(own),
  ]
}

function faultsOfCommon(platform: string, component: Json): string[] {
  const { name, entity_category: category, enabled_by_default: enabled, icon, qos } = component
  const wrong: [boolean, string][] = [
    [!('name' in component), 'name is missing: Home Assistant would make one up'],
    [
      name !== null && (typeof name !== 'string' || name === '' || name.length > 100),
      `name is ${JSON.stringify(name)}`,
    ],
    [!['config', 'diagnostic', undefined].includes(String(category ?? '') || undefined), 'entity_category is unknown'],
    [category === 'config' && /sensor$/.test(platform), 'a sensor cannot be configuration'],
    [enabled !== undefined && typeof enabled !== 'boolean', 'enabled_by_default is no boolean'],
    [icon !== undefined && !/^mdi:[a-z0-9-]+$/.test(String(icon)), 'icon is not mdi:…'],
    [qos !== undefined && ![0, 1, 2].includes(Number(qos)), 'qos is unknown'],
    [!isOnTheWeb(component['entity_picture']), 'entity_picture is no address'],
    [!isOnTheWeb(component['release_url']), 'release_url is no address'],
    [Object.values(component).includes(null) && name !== null, 'a key is null'],
    [JSON.stringify(component).includes('"~'), '~ is for abbreviations'],
  ]
  return wrong.filter(([is]) => is).map(([, what]) => what)
}

function faultsOfPlatform(platform: string, component: Json): string[] {
  const { device_class, state_class, unit_of_measurement, options, min, max, step, mode, event_types } = component
  const wrong: [boolean, string][] = [
    [options !== undefined && (!isList(options) || options.length === 0), 'options are no list of texts'],
    [platform === 'sensor' && (options !== undefined) !== (device_class === 'enum'), 'options and enum go together'],
    [
      device_class === 'enum' && (state_class ?? unit_of_measurement) !== undefined,
      'an enum has no state_class or unit',
    ],
    [device_class === 'data_size' && !/^[kMG]?i?B$/.test(String(unit_of_measurement)), 'data_size has no unit'],
    [device_class === 'timestamp' && state_class !== undefined, 'a timestamp has no state_class'],
    [platform === 'event' && (!isList(event_types) || event_types.length === 0), 'event_types are no list of texts'],
    [isList(event_types) && new Set(event_types).size < event_types.length, 'an event type occurs twice'],
    [platform === 'number' && !(Number(min) < Number(max)), 'min is not below max'],
    [platform === 'number' && step !== undefined && !(Number(step) >= 0.001), 'step is too small'],
    [platform === 'text' && !(Number(max) <= 255), 'a text has at most 255 characters'],
    [platform === 'text' && mode !== undefined && mode !== 'text' && mode !== 'password', 'mode is unknown'],
    [platform === 'button' && !isText(component['payload_press']), 'payload_press is no text'],
    [isList(options) && platform === 'sensor' && options.some(isOwn), 'an option is a word of Home Assistant'],
    ['json_attributes_template' in component !== 'json_attributes_topic' in component, 'attributes are half there'],
  ]
  return wrong.filter(([is]) => is).map(([, what]) => what)
}

function faultsOfTopics(component: Json): string[] {
  const topics = Object.entries(component).filter(([key]) => key.endsWith('_topic'))
  return topics
    .filter(([, topic]) => typeof topic !== 'string' || topic === '' || /[+#\0]/.test(topic) || topic.length > 65_535)
    .map(([key]) => `${key} cannot be published to`)
}

function faultsOfAvailability(list: unknown): string[] {
  if (!Array.isArray(list)) return ['availability is not a list']
  const extra = list.filter((entry) => Object.keys(Object(entry)).join() !== 'topic')
  return extra.length > 0 ? ['availability has other keys than topic'] : []
}

/** States that Home Assistant itself shows for an entity. */
const isOwn = (word: string) => ['unknown', 'unavailable'].includes(word.toLowerCase())

const isText = (value: unknown) => typeof value === 'string' && value !== ''

export function faultsOfUpdate(payload: string): string[] {
  const state: Json = JSON.parse(payload)
  return [
    ...unknownKeys('update', state, UPDATE_STATE),
    ...Object.entries(state)
      .filter(([key, value]) => !(UPDATE_VALUES.get(key)?.(value) ?? typeof value === 'string'))
      .map(([key]) => `${key} has a wrong type`),
  ]
}

function unknownKeys(what: string, object: Json, known: readonly string[]): string[] {
  return Object.keys(object)
    .filter((key) => !known.includes(key))
    .map((key) => `${what} must not have ${key}`)
}

function texts(what: string, object: Json, keys: readonly string[], longest: number): string[] {
  return keys
    .filter((key) => {
      const value = object[key]
      return typeof value !== 'string' || value === '' || value.length > longest || !value.isWellFormed()
    })
    .map((key) => `${what}: ${key} is ${JSON.stringify(object[key])?.slice(0, 80)}`)
}

const UPDATE_VALUES: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ['in_progress', (value) => typeof value === 'boolean'],
  ['update_percentage', (value) => value === null || (typeof value === 'number' && value >= 0 && value <= 100)],
])

/** Returns whether an address is on the web; a missing address is valid. */
function isOnTheWeb(url: unknown): boolean {
  return url === undefined || (URL.canParse(String(url)) && /^https?:$/.test(new URL(String(url)).protocol))
}

function isList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string')
}

function objectAt(object: Json, key: string): Json {
  const value = object[key]
  return typeof value === 'object' && value !== null ? Object(value) : {}
}
