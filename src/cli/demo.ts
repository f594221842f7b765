import { once } from 'node:events'
import { createServer } from 'node:net'
import { loadConfig } from '../config/load.ts'
import type { Config } from '../config/options.ts'
import { environmentName } from '../config/table.ts'
import { emulate } from '../emulator/command.ts'
import { DEFAULT_STORE } from '../emulator/population.ts'
import { EmulatedStore } from '../emulator/public-store.ts'
import type { Body, ConfigFlag } from './command.ts'
import { newKey } from './emulate.ts'
import { daemon } from './run.ts'

/** Scopes of the demo's key, which has all permissions that the bridge can use. */
const READS = ['system', 'updates', 'device', 'flow', 'insights']
const SCOPES = ['hub.app', 'hub.speech', ...READS.map((name) => `hub.${name}.readonly`)]

/** Options that refer to the user's hubs, fleet, broker or bridge. The demo ignores them. */
const WITHOUT = ['hubs', 'hubs_dir', 'fleet', 'mqtt.url', 'mqtt.client_id']
const NOT_FROM_ENVIRONMENT = [...WITHOUT, 'hub.api_key_file'].map(environmentName)

export const demo: Body<ConfigFlag & { readonly broker: string | undefined }> = async (io, flags) => {
  const { config: file, broker } = flags
  const apiKey = { ...newKey(), scopes: SCOPES }
  await using emulation = await emulate({ port: 0, flavour: 'older', apiKeys: [apiKey] })
  const { hub } = emulation
  const isIgnored = (variable: string) => NOT_FROM_ENVIRONMENT.some((name) => variable.startsWith(name))
  const given = Object.fromEntries(Object.entries(io.env).filter(([variable]) => !isIgnored(variable)))
  const own = { HUB2MQTT_HUB_URL: hub.url, HUB2MQTT_HUB_API_KEY: apiKey.key, ...(broker && onBroker(broker)) }
  const { config: wanted } = loadConfig({ file, env: { ...given, ...own }, without: WITHOUT })
  const request = { file, env: { ...given, ...own, ...(await freePorts(wanted)) }, without: WITHOUT }
  const { config } = loadConfig(request)
  const [app = ''] = hub.apps.keys()
  let page: string | undefined
  const onReady = () => io.print(invitation(config, app, page))
  const onPage = (address: string) => {
    page = address
  }
  // Emulate the public store, because it does not list the demo's apps.
  const newest = new Map(DEFAULT_STORE.map(({ id, version }) => [id, version]))
  await using store = await EmulatedStore.start(
    [...hub.apps.values()].map(({ id, version }) => ({ id, live: newest.get(id) ?? version })),
  )
  const code = await daemon(request, onReady, onPage, store.url)
  if (broker === undefined) return code
  const { clean } = await import('./cleanup.ts')
  return await clean(config, io, { yes: true })
}

type Variables = Readonly<Record<string, string>>

function onBroker(url: string): Variables {
  return { HUB2MQTT_MQTT_URL: url, HUB2MQTT_MQTT_BASE_TOPIC: 'hub2mqtt-demo', HUB2MQTT_DISCOVERY_FORMAT: 'off' }
}

async function freePorts({ mqtt, http }: Config): Promise<Variables> {
  const { url, embedded } = mqtt
  const broker = url === null ? await firstFreePort(embedded) : undefined
  const page = http.enabled ? await firstFreePort(http, broker) : undefined
  return {
    ...(broker !== undefined && broker !== embedded.port && { HUB2MQTT_MQTT_EMBEDDED_PORT: String(broker) }),
    ...(page !== undefined && page !== http.port && { HUB2MQTT_HTTP_PORT: String(page) }),
  }
}

/** Returns the text that introduces the demo. `page` is the address of the page with the start-up token. */
function invitation({ mqtt, http, hubs }: Config, app: string, page?: string): string {
  const url = new URL(mqtt.url?.[0] ?? `mqtt://${mqtt.embedded.host}:${mqtt.embedded.port}`)
  const host = url.hostname === '127.0.0.1' ? '' : ` -h ${url.hostname}`
  const port = url.port === '' || url.port === '1883' ? '' : ` -p ${url.port}`
  const to = `${host}${port}`
  return [
    '',
    'The demo runs. In another terminal:',
    '',
    `  mosquitto_sub${to} -v -t '${mqtt.base_topic}/#'`,
    `  mosquitto_pub${to} -t '${mqtt.base_topic}/${Object.keys(hubs)[0]}/app/${app}/cmd/restart' -n`,
    '',
    ...(http.enabled && http.page ? [`The page:           ${page ?? `http://${http.host}:${http.port}/`}`] : []),
    ...(http.enabled ? [`Health and metrics: http://${http.host}:${http.port}/healthz`] : []),
    'Ctrl-C stops it.',
    '',
  ].join('\n')
}

const TRIES = 100

/** Returns the first free port from `wanted` on, excluding `used`; `wanted` if 100 consecutive ports are in use. */
async function firstFreePort({ host, port: wanted }: { host: string; port: number }, used?: number): Promise<number> {
  for (let port = wanted; port < Math.min(wanted + TRIES, 65_536); port += 1) {
    const free = port === used ? undefined : await freePort(host, port)
    if (free !== undefined) return free
  }
  return wanted
}

async function freePort(host: string, port: number): Promise<number | undefined> {
  try {
    await using server = createServer()
    await once(server.listen({ host, port, exclusive: true }), 'listening')
    const at = server.address()
    return typeof at === 'object' ? at?.port : undefined
  } catch {
    return undefined
  }
}
