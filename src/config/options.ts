/** Every option there is. Types, environment names, checks, the JSON Schema, the example and the README follow. */
import { COMMAND_SELECTORS } from '../contract/permissions.ts'
import { LOG_FORMATS, LOG_LEVELS } from '../log/levels.ts'
import { apiKey, brokerUrl, host, hubUrl, label, password, path, topicPrefix } from './addresses.ts'
import { list, map } from './collections.ts'
import { boolean, choice, integer, optional, text } from './format.ts'
import { duration, size } from './quantity.ts'
import { publishedSetting } from './settings.ts'
import { defineOptions, type Values } from './table.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const KIB = 1024
const MIB = 1024 * KIB

/** A command's name, or what it is for and its name. */
const command = { ...choice('*', ...COMMAND_SELECTORS), name: '[command](#commands)' }

const appPattern = text({
  name: 'pattern',
  expected: 'an app id, in which * stands for any characters and ? for one',
  pattern: /^[^\p{Cc}\p{Cs}]{1,256}$/u,
})

/** The options of one hub: `hubs.<name>.<key>` in the file, `HUB2MQTT_HUB_<KEY>` for a single one. */
export const hubOptions = defineOptions({
  url: {
    doc: 'Address of the hub.',
    format: hubUrl,
    required: true,
    example: 'http://192.168.1.20',
  },
  api_key: {
    doc: 'API key made on the hub; its permissions decide what works.',
    format: apiKey,
    required: true,
    sensitive: true,
    example: 'put-the-key-here',
  },
  poll_interval: {
    doc: 'How often the app list is read and compared while realtime events arrive.',
    format: duration(SECOND, HOUR),
    default: 60 * SECOND,
  },
  poll_interval_fallback: {
    doc: 'The same while the realtime connection is down.',
    format: duration(SECOND, HOUR),
    default: 10 * SECOND,
  },
  timeout: {
    doc: 'How long one call to the hub may take.',
    format: duration(100, 10 * MINUTE),
    default: 10 * SECOND,
  },
  path_prefix: {
    doc: "First part of the API's paths; `auto` asks the hub.",
    format: choice('auto', 'manager', 'managers'),
    default: 'auto',
  },
  realtime: {
    doc: 'Whether to keep a realtime connection; without it only polling tells of changes.',
    format: boolean,
    default: true,
  },
  max_requests: {
    doc: 'How many calls may be under way at once.',
    format: integer(1, 16),
    default: 4,
  },
})

export const options = defineOptions({
  'mqtt.url': {
    doc: 'Address of the broker; without one an embedded broker for this machine is started.',
    format: optional(brokerUrl),
    default: null,
    example: 'mqtt://broker:1883',
  },
  'mqtt.base_topic': {
    doc: 'First part of every topic.',
    format: topicPrefix,
    default: 'hub2mqtt',
  },
  'mqtt.username': {
    doc: 'User name at the broker; the embedded broker asks for it too.',
    format: optional(label),
    default: null,
    example: 'hub2mqtt',
  },
  'mqtt.password': {
    doc: 'Password at the broker; the embedded broker asks for it too.',
    format: optional(password),
    default: null,
    sensitive: true,
    example: 'put-the-password-here',
  },
  'mqtt.client_id': {
    doc: 'Client id; without one it is generated. Two clients with one id throw each other out.',
    format: optional(label),
    default: null,
    example: 'hub2mqtt-home',
  },
  'mqtt.protocol': {
    doc: 'MQTT version; `auto` tries 5 and falls back to 3.1.1.',
    format: choice('auto', '5', '3.1.1'),
    default: 'auto',
  },
  'mqtt.ca_file': {
    doc: "Certificate authority (PEM) for the broker's certificate, instead of the system's.",
    format: optional(path),
    default: null,
    example: '/etc/hub2mqtt/ca.pem',
  },
  'mqtt.cert_file': {
    doc: 'Client certificate (PEM); needs `mqtt.key_file`.',
    format: optional(path),
    default: null,
    example: '/etc/hub2mqtt/client.pem',
  },
  'mqtt.key_file': {
    doc: 'Private key (PEM) of the client certificate.',
    namesSecret: true,
    format: optional(path),
    default: null,
    example: '/etc/hub2mqtt/client-key.pem',
  },
  'mqtt.reject_unauthorized': {
    doc: "Whether the broker's certificate must be valid.",
    format: boolean,
    default: true,
  },
  'mqtt.keepalive': {
    doc: 'Longest silence before the broker is asked whether it is there.',
    format: duration(SECOND, 18 * HOUR),
    default: 30 * SECOND,
  },
  'mqtt.embedded.host': {
    doc: 'Where the embedded broker listens; beyond loopback only with user name and password.',
    format: host,
    default: '127.0.0.1',
  },
  'mqtt.embedded.port': {
    doc: 'Its port for MQTT; 0 takes any free one.',
    format: integer(0, 65_535),
    default: 1883,
  },
  'mqtt.embedded.ws_port': {
    doc: 'Its port for MQTT over WebSocket; 0 turns that off.',
    format: integer(0, 65_535),
    default: 9001,
  },
  'mqtt.embedded.max_payload': {
    doc: 'Largest message that it takes.',
    format: size(KIB, 256 * MIB),
    default: MIB,
  },
  'commands.allow': {
    doc: 'Commands to allow that are off by default; `*` for all.',
    format: list(command),
    default: [],
    example: ['uninstall', 'hub/install'],
  },
  'commands.deny': {
    doc: 'Commands to refuse; wins over `commands.allow`.',
    format: list(command),
    default: [],
    example: ['set-setting', 'unset-setting'],
  },
  'commands.read_only': {
    doc: 'Whether to refuse every command that changes something on a hub.',
    format: boolean,
    default: false,
  },
  'apps.include': {
    doc: 'Apps to put on MQTT, by id; `*` stands for any characters, `?` for one.',
    format: list(appPattern),
    default: ['*'],
    example: ['com.athom.*'],
  },
  'apps.exclude': {
    doc: 'Apps to leave out altogether, the same way; wins over `apps.include`.',
    format: list(appPattern),
    default: [],
    example: ['com.example.secret'],
  },
  'settings.publish': {
    doc: 'Settings to publish: app id, name of the setting, its type. Settings can hold passwords; none is published unless named here.',
    format: map(map(publishedSetting)),
    default: new Map(),
    example: { 'com.athom.hue': { night_mode: 'switch', brightness: { type: 'number', min: 0, max: 100 } } },
  },
  'discovery.format': {
    doc: 'How Home Assistant is told of the devices: one message a `device`, one a `component` (for readers that know no other), or `off`.',
    format: choice('device', 'component', 'off'),
    default: 'device',
  },
  'discovery.prefix': {
    doc: 'Where it looks for them: the discovery prefix of its MQTT integration.',
    format: topicPrefix,
    default: 'homeassistant',
  },
  'discovery.birth_topic': {
    doc: 'Where it says that it has started: the birth message of its MQTT integration.',
    format: topicPrefix,
    default: 'homeassistant/status',
  },
  'http.enabled': {
    doc: 'Whether to listen for questions about health and metrics.',
    format: boolean,
    default: true,
  },
  'http.host': {
    doc: 'Where to listen for them. There is no login: beyond this machine others read the names of hubs and apps.',
    format: host,
    default: '127.0.0.1',
  },
  'http.port': {
    doc: 'Port for them; 0 takes any free one.',
    format: integer(0, 65_535),
    default: 8099,
  },
  'log.level': {
    doc: 'The least important kind of line to write.',
    format: choice(...LOG_LEVELS),
    default: 'info',
  },
  'log.format': {
    doc: 'One JSON object a line, or text for people; `auto` is `pretty` on a terminal.',
    format: choice(...LOG_FORMATS),
    default: 'auto',
  },
})

/** One hub's options. Durations are milliseconds. */
export type HubConfig = Values<typeof hubOptions>

/** The whole configuration as the daemon sees it. Durations are milliseconds, sizes bytes. */
export type Config = Values<typeof options> & { readonly hubs: Readonly<Record<string, HubConfig>> }

/** The environment's way to name the configuration file; `--config` wins. */
export const CONFIG_VARIABLE = 'HUB2MQTT_CONFIG'

/** The environment's name for the hub that `HUB2MQTT_HUB_…` describes; default: the file's only hub, else `home`. */
export const HUB_NAME_VARIABLE = 'HUB2MQTT_HUB_NAME'
export const DEFAULT_HUB_NAME = 'home'

/** A hub's name is a topic level of its own beside `bridge`. */
export const HUB_NAME_PATTERN = /^[a-z0-9_-]{1,32}$/
export const RESERVED_HUB_NAMES: readonly string[] = ['bridge', '__proto__']
