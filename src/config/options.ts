/** All options. Types, variables, checks, JSON Schema, example file and documentation are derived from them. */
import * as v from 'valibot'
import { LOG_FORMATS, LOG_LEVELS } from '../contract/log-levels.ts'
import { COMMAND_SELECTORS } from '../contract/permissions.ts'
import {
  address,
  ancestor,
  apiKey,
  brokerUrls,
  host,
  hubUrl,
  pagePassword,
  password,
  path,
  publicUrl,
  token,
  topicPrefix,
} from './addresses.ts'
import { fleetOptions } from './fleet-options.ts'
import { appPattern, guardOptions } from './guard-options.ts'
import { choice, duration, flag, integer, label, list, listOf, map, secret, size } from './schemas.ts'
import { callRule, publishedSetting, settingName } from './settings.ts'
import { defineOptions, liveOptions, type Option, type Values } from './table.ts'

const command = choice(['*', ...COMMAND_SELECTORS], '[command](#commands)')

const settingsByName = map(publishedSetting, 'settings by name, such as {night_mode: switch}', settingName)

const file = (opens: NonNullable<Option['opens']>, example: string) => ({ schema: path, opens, example })

/** The options of one hub: `hubs.<name>.<key>` in the file, `HUB2MQTT_HUB_<KEY>` for a single hub. */
export const hubOptions = defineOptions({
  url: {
    doc: 'Address of the hub.',
    schema: hubUrl,
    required: true,
    example: 'http://192.168.1.20',
  },
  api_key: {
    doc: 'API key of the hub. The permissions of the key determine which features work.',
    schema: apiKey,
    required: true,
    sensitive: true,
    example: 'put-the-key-here',
    live: { ifSame: 'url' },
  },
  poll_interval: {
    doc: 'Interval at which the bridge reads the list of apps while the realtime connection is up.',
    schema: duration('1s', '1h'),
    default: '1m',
  },
  poll_interval_fallback: {
    doc: 'Interval while the realtime connection is down, if it is shorter than `poll_interval`.',
    schema: duration('1s', '1h'),
    default: '10s',
  },
  timeout: {
    doc: 'Maximum duration of a request to the hub.',
    schema: duration('100ms', '10m'),
    default: '10s',
  },
  path_prefix: {
    doc: "First part of the API's paths; `auto` detects it.",
    schema: choice(['auto', 'manager', 'managers']),
    default: 'auto',
  },
  realtime: {
    doc: 'Whether to use the realtime connection. Without it, the bridge detects changes only by polling.',
    ...flag(true),
  },
  max_requests: {
    doc: 'Maximum number of concurrent requests to the hub.',
    schema: integer(1, 16),
    default: 4,
  },
})

/** A separate table, because programs other than the daemon read only these options. */
export const httpOptions = defineOptions({
  'http.enabled': {
    doc: 'Whether to serve HTTP: the page, its API, health and metrics.',
    ...flag(true),
  },
  'http.host': {
    doc: 'Address to listen on. Clients on other machines need `http.password` or a token for the page and its API, but no login for health and metrics, which contain the names of hubs and apps.',
    schema: host,
    default: '127.0.0.1',
  },
  'http.port': {
    doc: 'Port to listen on; 0 chooses a free port.',
    schema: integer(0, 65_535),
    default: 8099,
  },
  'http.token_file': {
    doc: 'File of the start-up token, which gives access to the page if `http.password` is not set. Default: the path of the configuration file with `.token` appended. If the file cannot be written, each start creates a new token.',
    ...file('made', '/var/lib/hub2mqtt/token'),
  },
  'http.allowed_hosts': {
    doc: 'Accepted host names in addition to `http.host`, `localhost` and all IP addresses. All other host names are refused, so that web pages cannot reach the listener under their own host names.',
    ...listOf(host, ['hub2mqtt.lan']),
  },
})

const pageOptions = liveOptions({
  'http.public_url': {
    doc: 'Address of the page for browsers. If it is set, Home Assistant links to the page and shows the icons of apps, which then need no login.',
    schema: publicUrl,
    example: 'https://home.example.org/hub2mqtt',
  },
  'http.password': {
    doc: 'Password of the page: text, or the output of `hub2mqtt hash-password`. Without a password, only this machine may use the page, if `http.host` is a loopback address; changes need the start-up token.',
    ...secret(pagePassword, 'put-the-password-here'),
  },
  'http.tokens': {
    doc: 'Tokens for scripts, by name. A token with `access: full` permits everything, `access: read` only reading.',
    schema: map(token, 'tokens by name, such as {grafana: {token: at-least-16-characters, access: read}}'),
    default: new Map(),
    sensitive: true,
    example: { grafana: { token: 'put-a-random-token-here', access: 'read' } },
  },
  'http.frame_ancestors': {
    doc: "Origins of web pages that may show the page in a frame; `self` is the page's own origin.",
    ...listOf(ancestor, ['https://dashboard.lan']),
  },
  'http.trusted_proxies': {
    doc: 'Addresses of reverse proxies whose `X-Forwarded-For`, `-Host` and `-Proto` are trusted.',
    ...listOf(address, ['192.168.1.10']),
  },
  'http.ingress': {
    doc: 'Whether requests of a trusted proxy with `X-Ingress-Path` count as logged in, as with Home Assistant.',
    ...flag(false),
  },
})

const bridgeOptions = defineOptions({
  'mqtt.url': {
    doc: 'Address of the broker, or a list of the addresses of one cluster, the preferred address first (in the environment, separated by commas). Default: an embedded broker for this machine.',
    schema: brokerUrls,
    example: 'mqtt://broker:1883',
  },
  'mqtt.base_topic': {
    doc: 'First part of every topic.',
    schema: topicPrefix,
    default: 'hub2mqtt',
  },
  'mqtt.username': {
    doc: 'User name for the broker. If it is set, the embedded broker requires it.',
    schema: label,
    example: 'hub2mqtt',
    live: { ifSame: 'mqtt.url' },
  },
  'mqtt.password': {
    doc: 'Password for the broker. If it is set, the embedded broker requires it.',
    ...secret(password, 'put-the-password-here'),
    live: { ifSame: 'mqtt.url' },
  },
  'mqtt.client_id': {
    doc: 'Client id; by default, it is generated. Two clients with the same id disconnect each other.',
    schema: label,
    example: 'hub2mqtt-home',
  },
  'mqtt.protocol': {
    doc: 'MQTT version; `auto` tries 5 first, and then 3.1.1 if the broker refuses 5.',
    schema: choice(['auto', '5', '3.1.1']),
    default: 'auto',
  },
  'mqtt.ca_file': {
    doc: "Certificate authority (PEM) of the broker's certificate. Default: the authorities that Node.js trusts or, with `NODE_OPTIONS=--use-system-ca`, those that the system trusts.",
    ...file('certificate', '/etc/hub2mqtt/ca.pem'),
  },
  'mqtt.cert_file': {
    doc: 'Client certificate (PEM); needs `mqtt.key_file`.',
    ...file('certificate', '/etc/hub2mqtt/client.pem'),
  },
  'mqtt.key_file': {
    doc: 'Private key (PEM) of the client certificate.',
    ...file('secret', '/etc/hub2mqtt/client-key.pem'),
  },
  'mqtt.reject_unauthorized': {
    doc: "Whether the broker's certificate must be valid.",
    ...flag(true),
  },
  'mqtt.keepalive': {
    doc: 'MQTT keep-alive: the longest time without a message before the bridge pings the broker.',
    schema: duration('1s', '18h'),
    default: '30s',
  },
  'mqtt.embedded.host': {
    doc: 'Address on which the embedded broker listens; an address other than loopback requires a user name and a password.',
    schema: host,
    default: '127.0.0.1',
  },
  'mqtt.embedded.port': {
    doc: 'Port of the embedded broker; 0 chooses a free port.',
    schema: integer(0, 65_535),
    default: 1883,
  },
  'mqtt.embedded.max_payload': {
    doc: 'Largest payload that the embedded broker accepts. For messages of the bridge, the limit applies to topic and payload together.',
    schema: size('1KiB', '256MiB'),
    default: '1MiB',
  },
})

const filterOptions = liveOptions({
  'commands.allow': {
    doc: 'Commands to allow that are off by default; `*` allows all commands.',
    ...listOf(command, ['uninstall', 'hub/install']),
  },
  'commands.deny': {
    doc: 'Commands to refuse, also from the guardian: with `restart`, the guardian restarts nothing; with `guard`, clients cannot control the guardian. Overrides `commands.allow`.',
    ...listOf(command, ['set-setting', 'unset-setting']),
  },
  'commands.read_only': {
    doc: 'Whether to refuse every command that changes something on a hub.',
    ...flag(false),
  },
  'commands.call': {
    doc: 'Managers and apps that `hub/call` may use, by id (`*` stands for any characters, `?` for one), and the allowed methods; `section: manager` or `section: app` limits a rule to managers or apps. In the environment, write a JSON list. If a command has the same operation as a call, that command must also be allowed.',
    schema: list(callRule),
    default: [{ item: '*', methods: ['GET', 'POST', 'PUT', 'DELETE'] }],
    example: [{ item: 'notifications', methods: ['GET'] }],
  },
  'commands.response_topics': {
    doc: "Accepted MQTT 5 Response Topics, specified by their first levels. Default: all topics except the bridge's topics and Home Assistant's discovery.",
    ...listOf(topicPrefix, ['answers', 'clients/hub2mqtt']),
  },
  'apps.include': {
    doc: 'Apps to publish, by id; `*` stands for any characters, `?` for one.',
    schema: list(appPattern),
    default: ['*'],
    example: ['com.athom.*'],
  },
  'apps.exclude': {
    doc: 'Apps not to publish, by id; overrides `apps.include`.',
    ...listOf(appPattern, ['com.example.secret']),
  },
  'settings.publish': {
    doc: 'Settings to publish: app id, name of the setting, type. Other settings are not published, because they can contain passwords.',
    schema: map(settingsByName, 'apps by id, such as {com.athom.hue: {night_mode: switch}}'),
    default: new Map(),
    example: { 'com.athom.hue': { night_mode: 'switch', brightness: { type: 'number', min: 0, max: 100 } } },
  },
})

const otherOptions = defineOptions({
  'discovery.format': {
    doc: 'Discovery messages for Home Assistant: one per `device`, one per `component` (for clients that do not support device messages), or `off`.',
    schema: choice(['device', 'component', 'off']),
    default: 'device',
  },
  'discovery.prefix': {
    doc: "Discovery prefix of Home Assistant's MQTT integration.",
    schema: topicPrefix,
    default: 'homeassistant',
  },
  'discovery.rate': {
    doc: 'Number of devices that are published per second, after the first 64, which are published immediately; 0: as fast as the broker acknowledges them.',
    schema: integer(0, 1000),
    default: 20,
  },
  'discovery.triggers': {
    doc: 'Whether devices have triggers for automations. After Home Assistant has reloaded MQTT, devices with triggers cannot be deleted until Home Assistant restarts.',
    ...flag(true),
  },
  'discovery.birth_topic': {
    doc: "Topic of the birth message of Home Assistant's MQTT integration.",
    schema: topicPrefix,
    default: 'homeassistant/status',
  },
  ...httpOptions,
  'http.page': {
    doc: 'Whether to serve the page and its API; health and metrics are always served.',
    ...flag(true),
  },
  ...pageOptions,
  hubs_dir: {
    doc: 'Folder with a file for each hub, `<name>.yaml`, `.yml` or `.json`, which has the options of the hub at the top level. The folder is checked every ten seconds; hubs are added and removed with their files.',
    ...file('folder', '/etc/hub2mqtt/hubs'),
  },
  'log.level': {
    doc: 'The lowest level that is logged.',
    schema: choice(LOG_LEVELS),
    default: 'info',
    live: true,
  },
  'log.format': {
    doc: 'Format of the log: `json` writes one object per line, `pretty` readable text; `auto` means `pretty` on a terminal, otherwise `json`.',
    schema: choice(LOG_FORMATS),
    default: 'auto',
  },
})

export const options = { ...bridgeOptions, ...filterOptions, ...guardOptions, ...fleetOptions, ...otherOptions }

/** Durations are in milliseconds. */
export type HubConfig = Values<typeof hubOptions>

/** Durations are in milliseconds, sizes in bytes. */
export type Config = Values<typeof options> & { readonly hubs: Readonly<Record<string, HubConfig>> }

/** The current configuration. A reload replaces `value`, so do not cache it. */
export interface Live {
  readonly value: Config
  /** Whether hubs may be missing only because their folder is temporarily empty; default: `false`. */
  readonly awaitsHubs?: boolean
}

/** The path of the configuration file. `--config` takes precedence. */
export const CONFIG_VARIABLE = 'HUB2MQTT_CONFIG'

/** The name of the hub that `HUB2MQTT_HUB_…` configures; default: the only hub of the configuration file, or `home`. */
export const HUB_NAME_VARIABLE = 'HUB2MQTT_HUB_NAME'
export const DEFAULT_HUB_NAME = 'home'

export const HUB_NAME =
  '1 to 32 characters a-z, 0-9, _ and -, other than bridge, fleet, rollout, constructor, prototype and __proto__'
export const EXPECTED_NAME = `expected a hub name such as home: ${HUB_NAME}`

/** Excludes names that are levels of the bridge's own topics, and names of properties that every object has. */
export const hubName = v.pipe(
  v.string(),
  v.regex(/^(?!(?:bridge|fleet|rollout|__proto__|constructor|prototype)$)[a-z0-9_-]{1,32}$/u, EXPECTED_NAME),
)
