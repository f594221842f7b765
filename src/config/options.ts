/** All options. Types, variables, checks, JSON Schema, example file and documentation are derived from them. */
import * as v from 'valibot'
import { LOG_FORMATS, LOG_LEVELS } from '../contract/log-levels.ts'
import { COMMAND_SELECTORS } from '../contract/permissions.ts'
import * as addresses from './addresses.ts'
import { fleetOptions } from './fleet-options.ts'
import { appPattern, guardOptions } from './guard-options.ts'
import { choice, duration, flag, integer, label, listOf, map, secret, size } from './schemas.ts'
import { callRule, publishedSetting, settingName } from './settings.ts'
import { defineOptions, liveOptions, type Option, option, type Values } from './table.ts'

const command = choice(['*', ...COMMAND_SELECTORS], '[command](#commands)')

const settingsByName = map(publishedSetting, 'settings by name, such as {"night_mode": "switch"}', settingName)

const file = (opens: NonNullable<Option['opens']>, example: string) => option(addresses.path, { opens, example })

/** The options of one hub: `hubs.<name>.<key>` in the file, `HUB2MQTT_HUB_<KEY>` for a single hub. */
export const hubOptions = defineOptions({
  url: option(addresses.hubUrl, { required: true, example: 'http://192.168.1.20' }).doc('Address of the hub.'),
  api_key: option(addresses.apiKey, {
    required: true,
    sensitive: true,
    example: 'put-the-key-here',
    live: { ifSame: 'url' },
  }).doc('API key of the hub. The permissions of the key determine which features work.'),
  poll_interval: option(duration('1s', '1h'), { default: '1m' }).doc(
    'Interval at which the bridge reads the list of apps while the realtime connection is up.',
  ),
  poll_interval_fallback: option(duration('1s', '1h'), { default: '10s' }).doc(
    'Interval while the realtime connection is down. Ignored if it is longer than `poll_interval`.',
  ),
  timeout: option(duration('100ms', '10m'), { default: '10s' }).doc('Maximum duration of a request to the hub.'),
  path_prefix: option(choice(['auto', 'manager', 'managers']), { default: 'auto' }).doc(
    "First part of the API's paths; `auto` detects it.",
  ),
  realtime: flag(true).doc(
    'Whether to use the realtime connection. Without it, the bridge detects changes only by polling.',
  ),
  max_requests: option(integer(1, 16), { default: 4 }).doc('Maximum number of concurrent requests to the hub.'),
})

/** A separate table, because programs other than the daemon read only these options. */
export const httpOptions = defineOptions({
  'http.enabled': flag(true).doc('Whether to serve HTTP: the page, its API, health and metrics.'),
  'http.host': option(addresses.host, { default: '127.0.0.1' }).doc(
    'Address to listen on. Clients on other machines need `http.password` or a token for the page and its API, but no login for health and metrics, which contain the names of hubs and apps.',
  ),
  'http.port': option(integer(0, 65_535), { default: 8099 }).doc('Port to listen on; 0 chooses a free port.'),
  'http.token_file': file('made', '/var/lib/hub2mqtt/token').doc(
    'File of the start-up token, which gives access to the page if `http.password` is not set. Default: the path of the configuration file with `.token` appended. If the file cannot be written, each start creates a new token.',
  ),
  'http.allowed_hosts': listOf(addresses.host, ['hub2mqtt.lan']).doc(
    'Accepted host names in addition to `http.host`, `localhost` and all IP addresses. All other host names are refused, so that web pages cannot reach the listener under their own host names.',
  ),
  'http.page': flag(true).doc('Whether to serve the page and its API; health and metrics are always served.'),
})

const pageOptions = liveOptions({
  'http.public_url': option(addresses.publicUrl, { example: 'https://home.example.org/hub2mqtt' }).doc(
    'Address of the page for browsers. If it is set, Home Assistant links to the page and shows the icons of apps, which then need no login.',
  ),
  'http.password': secret(addresses.pagePassword, 'put-the-password-here').doc(
    'Password of the page: text, or the output of `hub2mqtt hash-password`. Without a password, the page is available only on this machine, and only if `http.host` is a loopback address; making changes then needs the start-up token.',
  ),
  'http.tokens': option(
    map(addresses.token, 'tokens by name, such as {"grafana": {"token": "at-least-16-characters", "access": "read"}}'),
    { default: new Map(), sensitive: true, example: { grafana: { token: 'put-a-random-token-here', access: 'read' } } },
  ).doc('Tokens for scripts, by name. A token with `access: full` permits everything, `access: read` only reading.'),
  'http.frame_ancestors': listOf(addresses.ancestor, ['https://dashboard.lan']).doc(
    "Origins of web pages that may show the page in a frame; `self` is the page's own origin.",
  ),
  'http.trusted_proxies': listOf(addresses.address, ['192.168.1.10']).doc(
    'Addresses of reverse proxies whose `X-Forwarded-For`, `-Host` and `-Proto` are trusted.',
  ),
  'http.ingress': flag(false).doc(
    'Whether a request with the header `X-Ingress-Path` from a trusted proxy counts as logged in; for the ingress of Home Assistant.',
  ),
})

const bridgeOptions = defineOptions({
  'mqtt.url': option(addresses.brokerUrls, { example: 'mqtt://broker:1883' }).doc(
    'Address of the broker, or a list of the addresses of one cluster, the preferred address first (in the environment, separated by commas). Default: an embedded broker for this machine.',
  ),
  'mqtt.base_topic': option(addresses.topicPrefix, { default: 'hub2mqtt' }).doc('First part of every topic.'),
  'mqtt.username': option(label, { example: 'hub2mqtt', live: { ifSame: 'mqtt.url' } }).doc(
    'User name for the broker. If it is set, the embedded broker requires it.',
  ),
  'mqtt.password': secret(addresses.password, 'put-the-password-here', { live: { ifSame: 'mqtt.url' } }).doc(
    'Password for the broker. If it is set, the embedded broker requires it.',
  ),
  'mqtt.client_id': option(label, { example: 'hub2mqtt-home' }).doc(
    'Client id; by default, it is generated. Two clients with the same id disconnect each other.',
  ),
  'mqtt.protocol': option(choice(['auto', '5', '3.1.1']), { default: 'auto' }).doc(
    'MQTT version; `auto` tries 5 first, and then 3.1.1 if the broker refuses 5.',
  ),
  'mqtt.ca_file': file('certificate', '/etc/hub2mqtt/ca.pem').doc(
    "Certificate authority (PEM) of the broker's certificate. Default: the authorities that Node.js trusts or, with `NODE_OPTIONS=--use-system-ca`, those that the system trusts.",
  ),
  'mqtt.cert_file': file('certificate', '/etc/hub2mqtt/client.pem').doc(
    'Client certificate (PEM); needs `mqtt.key_file`.',
  ),
  'mqtt.key_file': file('key', '/etc/hub2mqtt/client-key.pem').doc('Private key (PEM) of the client certificate.'),
  'mqtt.reject_unauthorized': flag(true).doc("Whether the broker's certificate must be valid."),
  'mqtt.keepalive': option(duration('1s', '18h'), { default: '30s' }).doc(
    'MQTT keep-alive: the longest time without a message before the bridge pings the broker.',
  ),
  'mqtt.embedded.host': option(addresses.host, { default: '127.0.0.1' }).doc(
    'Address on which the embedded broker listens; an address other than loopback requires a user name and a password.',
  ),
  'mqtt.embedded.port': option(integer(0, 65_535), { default: 1883 }).doc(
    'Port of the embedded broker; 0 chooses a free port.',
  ),
  'mqtt.embedded.max_payload': option(size('1KiB', '256MiB'), { default: '1MiB' }).doc(
    'Largest payload that the embedded broker accepts. For messages of the bridge, the limit applies to topic and payload together.',
  ),
})

const filterOptions = liveOptions({
  'commands.allow': listOf(command, ['uninstall', 'hub/install']).doc(
    'Commands to allow that are off by default; `*` allows all commands.',
  ),
  'commands.deny': listOf(command, ['set-setting', 'unset-setting']).doc(
    'Commands to refuse, even if the guardian sends them: with `restart`, the guardian restarts no apps; with `guard`, clients cannot control the guardian. Overrides `commands.allow`.',
  ),
  'commands.read_only': flag(false).doc('Whether to refuse every command that changes something on a hub.'),
  'commands.call': listOf(
    callRule,
    [{ item: 'notifications', methods: ['GET'] }],
    [{ item: '*', methods: ['GET', 'POST', 'PUT', 'DELETE'] }],
  ).doc(
    'Managers and apps that `hub/call` may use, by id (`*` stands for any characters, `?` for one), and the allowed methods; `section: manager` or `section: app` limits a rule to managers or apps. In the environment, write a JSON list. If a command has the same operation as a call, that command must also be allowed.',
  ),
  'commands.response_topics': listOf(addresses.topicPrefix, ['answers', 'clients/hub2mqtt']).doc(
    "Accepted MQTT 5 Response Topics, specified by their first levels. Default: all topics except the bridge's topics and Home Assistant's discovery.",
  ),
  'apps.include': listOf(appPattern, ['com.athom.*'], ['*']).doc(
    'Apps to publish, by id; `*` stands for any characters, `?` for one.',
  ),
  'apps.exclude': listOf(appPattern, ['com.example.secret']).doc(
    'Apps not to publish, by id; overrides `apps.include`.',
  ),
  'settings.publish': option(map(settingsByName, 'apps by id, such as {"com.athom.hue": {"night_mode": "switch"}}'), {
    default: new Map(),
    example: { 'com.athom.hue': { night_mode: 'switch', brightness: { type: 'number', min: 0, max: 100 } } },
  }).doc(
    'Settings to publish: app id, name of the setting, type. Other settings are not published, because they can contain passwords.',
  ),
})

const otherOptions = defineOptions({
  'discovery.format': option(choice(['device', 'component', 'off']), { default: 'device' }).doc(
    'Discovery messages for Home Assistant: one per `device`, one per `component` (for clients that do not support device messages), or `off`.',
  ),
  'discovery.prefix': option(addresses.topicPrefix, { default: 'homeassistant' }).doc(
    "Discovery prefix of Home Assistant's MQTT integration.",
  ),
  'discovery.rate': option(integer(0, 1000), { default: 20 }).doc(
    'Number of devices that are published per second, after the first 64, which are published immediately; 0: as fast as the broker acknowledges them.',
  ),
  'discovery.triggers': flag(true).doc(
    'Whether devices have triggers for automations. After Home Assistant has reloaded MQTT, devices with triggers cannot be deleted until Home Assistant restarts.',
  ),
  'discovery.birth_topic': option(addresses.topicPrefix, { default: 'homeassistant/status' }).doc(
    "Topic of the birth message of Home Assistant's MQTT integration.",
  ),
  ...httpOptions,
  ...pageOptions,
  hubs_dir: option(addresses.path, { opens: 'folder', example: '/etc/hub2mqtt/hubs', live: true }).doc(
    'Folder with one file for each hub, `<name>.yaml`, `.yml` or `.json`, which contains the options of the hub at the top level. The folder is checked every ten seconds: a hub is added or removed when its file is.',
  ),
  'log.level': option(choice(LOG_LEVELS), { default: 'info', live: true }).doc('The lowest level that is logged.'),
  'log.format': option(choice(LOG_FORMATS), { default: 'auto' }).doc(
    'Format of the log: `json` writes one object per line, `pretty` readable text; `auto` means `pretty` on a terminal, otherwise `json`.',
  ),
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
