/** Every option there is. Types, environment names, checks, the JSON Schema, the example file and the documentation follow. */
import * as v from 'valibot'
import { LOG_FORMATS, LOG_LEVELS } from '../contract/log-levels.ts'
import { COMMAND_SELECTORS } from '../contract/permissions.ts'
import { apiKey, brokerUrls, host, hubUrl, origin, password, path, publicUrl, topicPrefix } from './addresses.ts'
import { callRule } from './call-rules.ts'
import { fleetOptions } from './fleet-options.ts'
import { appPattern, guardOptions } from './guard-options.ts'
import { address, ancestor, pagePassword, token } from './page-access.ts'
import { boolean, choice, duration, integer, label, list, map, size } from './schemas.ts'
import { publishedSetting, settingName } from './settings.ts'
import { defineOptions, type Values } from './table.ts'

/** A command's name, or what it is for and its name. */
const command = choice(['*', ...COMMAND_SELECTORS], '[command](#commands)')

const settingsByName = map(publishedSetting, 'settings by name, such as {night_mode: switch}', settingName)

/** The options of one hub: `hubs.<name>.<key>` in the file, `HUB2MQTT_HUB_<KEY>` for a single one. */
export const hubOptions = defineOptions({
  url: {
    doc: 'Address of the hub.',
    schema: hubUrl,
    required: true,
    example: 'http://192.168.1.20',
  },
  api_key: {
    doc: 'API key made on the hub; its permissions decide what works.',
    schema: apiKey,
    required: true,
    sensitive: true,
    example: 'put-the-key-here',
    live: { ifSame: 'url' },
  },
  poll_interval: {
    doc: 'How often the app list is read and compared while realtime events arrive.',
    schema: duration('1s', '1h'),
    default: '1m',
  },
  poll_interval_fallback: {
    doc: 'The same while the realtime connection is down, where it is the shorter of the two.',
    schema: duration('1s', '1h'),
    default: '10s',
  },
  timeout: {
    doc: 'How long one call to the hub may take.',
    schema: duration('100ms', '10m'),
    default: '10s',
  },
  path_prefix: {
    doc: "First part of the API's paths; `auto` asks the hub.",
    schema: choice(['auto', 'manager', 'managers']),
    default: 'auto',
  },
  realtime: {
    doc: 'Whether to keep a realtime connection; without it only polling tells of changes.',
    schema: boolean,
    default: true,
  },
  max_requests: {
    doc: 'How many calls may be under way at once.',
    schema: integer(1, 16),
    default: 4,
  },
})

/** Apart from the others, as a program beside the daemon reads no more than these. */
export const httpOptions = defineOptions({
  'http.enabled': {
    doc: 'Whether to listen for HTTP: the page, its API, health and metrics.',
    schema: boolean,
    default: true,
  },
  'http.host': {
    doc: 'Where to listen. Health and metrics need no login: beyond this machine others read the names of hubs and apps. The page and its API need `http.password` or a token there.',
    schema: host,
    default: '127.0.0.1',
  },
  'http.port': {
    doc: 'Its port; 0 takes any free one.',
    schema: integer(0, 65_535),
    default: 8099,
  },
  'http.token_file': {
    doc: 'File in which the start-up token is kept, which opens the page while there is no `http.password`; default: beside the configuration file, with `.token` after its name. Where it cannot be written, each start has a new token.',
    schema: path,
    opens: 'made',
    default: null,
    example: '/var/lib/hub2mqtt/token',
  },
  'http.allowed_hosts': {
    doc: 'Names by which others may ask there, besides `http.host`, `localhost` and any IP address: so that no page in a browser can read it under a name of its own. Web pages reach the WebSocket of the embedded broker by these names too.',
    schema: list(host),
    default: [],
    example: ['hub2mqtt.lan'],
  },
})

/** Who may use the page and its API: nothing that a program beside the daemon needs to know. */
const pageOptions = defineOptions({
  'http.page': {
    doc: 'Whether the page and its API are served; health and metrics always are.',
    schema: boolean,
    default: true,
  },
  'http.public_url': {
    doc: 'Where browsers reach the page: Home Assistant then links to it and shows the icons of apps. Whoever reaches the listener may then see these icons without a login.',
    schema: publicUrl,
    default: null,
    example: 'https://home.example.org/hub2mqtt',
    live: true,
  },
  'http.password': {
    doc: 'Password of the page: text, or what `hub2mqtt hash-password` prints. Without one, only this machine may use it, where `http.host` is loopback; to change something takes the start-up token.',
    schema: pagePassword,
    default: null,
    sensitive: true,
    example: 'put-the-password-here',
    live: true,
  },
  'http.tokens': {
    doc: 'Tokens of scripts for the API, each under a name: `full` may do everything, `read` only look.',
    schema: map(token, 'tokens by name, such as {grafana: {token: at-least-16-characters, access: read}}'),
    default: new Map(),
    sensitive: true,
    example: { grafana: { token: 'put-a-random-token-here', access: 'read' } },
    live: true,
  },
  'http.frame_ancestors': {
    doc: 'Web pages that may show the page in a frame, by their origin; `self` for pages of the same origin.',
    schema: list(ancestor),
    default: [],
    example: ['https://dashboard.lan'],
    live: true,
  },
  'http.trusted_proxies': {
    doc: 'Addresses of reverse proxies whose `X-Forwarded-For`, `-Host` and `-Proto` count.',
    schema: list(address),
    default: [],
    example: ['192.168.1.10'],
    live: true,
  },
  'http.ingress': {
    doc: 'Whether what a trusted proxy sends with `X-Ingress-Path` is logged in already, as with Home Assistant.',
    schema: boolean,
    default: false,
    live: true,
  },
})

const bridgeOptions = defineOptions({
  'mqtt.url': {
    doc: 'Address of the broker, or a list of the addresses of one cluster, the preferred one first (in the environment separated by commas); without any an embedded broker for this machine is started.',
    schema: brokerUrls,
    default: null,
    example: 'mqtt://broker:1883',
  },
  'mqtt.base_topic': {
    doc: 'First part of every topic.',
    schema: topicPrefix,
    default: 'hub2mqtt',
  },
  'mqtt.username': {
    doc: 'User name at the broker; the embedded broker asks for it too.',
    schema: label,
    default: null,
    example: 'hub2mqtt',
    live: { ifSame: 'mqtt.url' },
  },
  'mqtt.password': {
    doc: 'Password at the broker; the embedded broker asks for it too.',
    schema: password,
    default: null,
    sensitive: true,
    example: 'put-the-password-here',
    live: { ifSame: 'mqtt.url' },
  },
  'mqtt.client_id': {
    doc: 'Client id; without one it is generated. Two clients with one id throw each other out.',
    schema: label,
    default: null,
    example: 'hub2mqtt-home',
  },
  'mqtt.protocol': {
    doc: 'MQTT version; `auto` tries 5 and falls back to 3.1.1.',
    schema: choice(['auto', '5', '3.1.1']),
    default: 'auto',
  },
  'mqtt.ca_file': {
    doc: "Certificate authority (PEM) for the broker's certificate, instead of those that Node.js knows or, with `NODE_OPTIONS=--use-system-ca`, the system.",
    schema: path,
    opens: true,
    default: null,
    example: '/etc/hub2mqtt/ca.pem',
  },
  'mqtt.cert_file': {
    doc: 'Client certificate (PEM); needs `mqtt.key_file`.',
    schema: path,
    opens: true,
    default: null,
    example: '/etc/hub2mqtt/client.pem',
  },
  'mqtt.key_file': {
    doc: 'Private key (PEM) of the client certificate.',
    schema: path,
    opens: 'secret',
    default: null,
    example: '/etc/hub2mqtt/client-key.pem',
  },
  'mqtt.reject_unauthorized': {
    doc: "Whether the broker's certificate must be valid.",
    schema: boolean,
    default: true,
  },
  'mqtt.keepalive': {
    doc: 'Longest silence before the broker is asked whether it is there.',
    schema: duration('1s', '18h'),
    default: '30s',
  },
  'mqtt.embedded.host': {
    doc: 'Where the embedded broker listens; beyond loopback only with user name and password.',
    schema: host,
    default: '127.0.0.1',
  },
  'mqtt.embedded.port': {
    doc: 'Its port for MQTT; 0 takes any free one.',
    schema: integer(0, 65_535),
    default: 1883,
  },
  'mqtt.embedded.ws_port': {
    doc: 'Its port for MQTT over WebSocket; 0 turns that off.',
    schema: integer(0, 65_535),
    default: 9001,
  },
  'mqtt.embedded.ws_origins': {
    doc: 'Web pages that may use it, by their origin.',
    schema: list(origin),
    default: [],
    example: ['http://localhost:3000'],
  },
  'mqtt.embedded.max_payload': {
    doc: 'Largest payload that it takes.',
    schema: size('1KiB', '256MiB'),
    default: '1MiB',
  },
  'commands.allow': {
    doc: 'Commands to allow that are off by default; `*` for all.',
    schema: list(command),
    default: [],
    example: ['uninstall', 'hub/install'],
    live: true,
  },
  'commands.deny': {
    doc: 'Commands to refuse, those that the guardian sends included: with `restart` it restarts nothing, while `guard` only keeps its switch from others. Wins over `commands.allow`.',
    schema: list(command),
    default: [],
    example: ['set-setting', 'unset-setting'],
    live: true,
  },
  'commands.read_only': {
    doc: 'Whether to refuse every command that changes something on a hub.',
    schema: boolean,
    default: false,
    live: true,
  },
  'commands.call': {
    doc: 'What `hub/call` may reach: managers and apps by their ids (`*` stands for any characters, `?` for one), and methods; with `section: manager` or `section: app` only one of the two. In the environment a JSON list. It never reaches what the command for it may not.',
    schema: list(callRule),
    default: [{ item: '*', methods: ['GET', 'POST', 'PUT', 'DELETE'] }],
    example: [{ item: 'notifications', methods: ['GET'] }],
    live: true,
  },
  'commands.response_topics': {
    doc: "Where answers may go that an asker wants on a topic of its own, by the topic's first levels; none: anywhere but to the bridge's topics and Home Assistant's discovery.",
    schema: list(topicPrefix),
    default: [],
    example: ['answers', 'clients/hub2mqtt'],
    live: true,
  },
  'apps.include': {
    doc: 'Apps to put on MQTT, by id; `*` stands for any characters, `?` for one.',
    schema: list(appPattern),
    default: ['*'],
    example: ['com.athom.*'],
    live: true,
  },
  'apps.exclude': {
    doc: 'Apps to leave out altogether, the same way; wins over `apps.include`.',
    schema: list(appPattern),
    default: [],
    example: ['com.example.secret'],
    live: true,
  },
  'settings.publish': {
    doc: 'Settings to publish: app id, name of the setting, its type. Settings can hold passwords; none is published unless named here.',
    schema: map(settingsByName, 'apps by id, such as {com.athom.hue: {night_mode: switch}}'),
    default: new Map(),
    example: { 'com.athom.hue': { night_mode: 'switch', brightness: { type: 'number', min: 0, max: 100 } } },
    live: true,
  },
})

const otherOptions = defineOptions({
  'discovery.format': {
    doc: 'How Home Assistant is told of the devices: one message a `device`, one a `component` (for readers that know no other), or `off`.',
    schema: choice(['device', 'component', 'off']),
    default: 'device',
  },
  'discovery.prefix': {
    doc: 'Where it looks for them: the discovery prefix of its MQTT integration.',
    schema: topicPrefix,
    default: 'homeassistant',
  },
  'discovery.rate': {
    doc: 'How many devices a second it is told of, after the first 64 at once; 0: as fast as the broker acknowledges.',
    schema: integer(0, 1000),
    default: 20,
  },
  'discovery.triggers': {
    doc: 'Whether devices have triggers for automations. Home Assistant cannot delete a device that has them once it has reloaded MQTT, until it restarts.',
    schema: boolean,
    default: true,
  },
  'discovery.birth_topic': {
    doc: 'Where it says that it has started: the birth message of its MQTT integration.',
    schema: topicPrefix,
    default: 'homeassistant/status',
  },
  ...httpOptions,
  ...pageOptions,
  hubs_dir: {
    doc: 'Folder with a file for each hub, `<name>.yaml`, `.yml` or `.json`, with its options at the top. It is looked at every ten seconds: hubs come and go with their files.',
    schema: path,
    opens: 'folder',
    default: null,
    example: '/etc/hub2mqtt/hubs',
  },
  'log.level': {
    doc: 'The least important kind of line to write.',
    schema: choice(LOG_LEVELS),
    default: 'info',
    live: true,
  },
  'log.format': {
    doc: 'One JSON object a line, or text for people; `auto` is `pretty` on a terminal.',
    schema: choice(LOG_FORMATS),
    default: 'auto',
  },
})

export const options = { ...bridgeOptions, ...guardOptions, ...fleetOptions, ...otherOptions }

/** One hub's options. Durations are milliseconds. */
export type HubConfig = Values<typeof hubOptions>

/** The whole configuration as the daemon sees it. Durations are milliseconds, sizes bytes. */
export type Config = Values<typeof options> & { readonly hubs: Readonly<Record<string, HubConfig>> }

/** The configuration that holds now, replaced as a whole: ask it anew each time. */
export interface Live {
  readonly value: Config
  /** Whether hubs may be missing only because their folder is empty for the moment; default: they are not. */
  readonly awaitsHubs?: boolean
}

/** The environment's way to name the configuration file; `--config` wins. */
export const CONFIG_VARIABLE = 'HUB2MQTT_CONFIG'

/** The environment's name for the hub that `HUB2MQTT_HUB_…` describes; default: the file's only hub, else `home`. */
export const HUB_NAME_VARIABLE = 'HUB2MQTT_HUB_NAME'
export const DEFAULT_HUB_NAME = 'home'

export const HUB_NAME =
  '1 to 32 characters a-z, 0-9, _ and -, other than bridge, fleet, rollout and words of JavaScript (constructor, prototype, __proto__)'
export const EXPECTED_NAME = `expected a hub name such as home: ${HUB_NAME}`

/** A topic level of its own beside `bridge`. Three names are those of what every object of JavaScript has. */
export const hubName = v.pipe(
  v.string(),
  v.regex(/^(?!(?:bridge|fleet|rollout|__proto__|constructor|prototype)$)[a-z0-9_-]{1,32}$/u, EXPECTED_NAME),
)
