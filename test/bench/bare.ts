/**
 * The baseline: the shortest program with the same libraries that transfers the same bytes. It does not reconnect,
 * validate or read options. With `NAGLE=on`, it uses the defaults of mqtt.js, like most bridges.
 */
import { Socket } from 'node:net'
import mqtt from 'mqtt'
import { Manager } from 'socket.io-client'
import { Agent, request } from 'undici'

const { BENCH_MQTT = '', BENCH_HUB = '', BENCH_KEY = '', NAGLE } = process.env
const base = 'hub2mqtt'
// Use as many parallel requests as hub2mqtt, because the benchmark compares programs, not the load on the hub.
const dispatcher = new Agent({ pipelining: 1, connections: 4, keepAliveTimeout: 1000, allowH2: false })
const headers = { authorization: `Bearer ${BENCH_KEY}` }

interface AppRecord {
  readonly [key: string]: unknown
  readonly id: string
  readonly updateAvailable: { readonly version: string } | null
  readonly usage: { readonly cpu: number; readonly mem: number }
  readonly author: { readonly name: string }
}

const publish = (r: AppRecord) =>
  client.publishAsync(
    `${base}/home/app/${r.id}`,
    JSON.stringify({
      id: r.id,
      name: r['name'],
      version: r['version'],
      enabled: r['enabled'],
      state: r['state'],
      crashed: r['crashed'],
      crash_message: r['crashedMessage'],
      crash_count: r['exitCount'],
      autoupdate: r['autoupdate'],
      channel: r['channel'],
      origin: r['origin'],
      update_available: r.updateAvailable !== null,
      latest_version: r.updateAvailable?.version ?? null,
      cpu_percent: Math.round(r.usage.cpu * 1000) / 10,
      memory_bytes: r.usage.mem,
      has_settings: r['settings'],
      sdk: r['sdk'],
      author: r.author.name,
      compatibility: r['compatibility'],
    }),
    { qos: 1, retain: true },
  )

const call = async (method: string, path: string): Promise<unknown> => {
  const { body } = await request(`${BENCH_HUB}/api/manager/apps/app${path}`, { method, headers, dispatcher })
  return body.json()
}

const client = mqtt.connect(BENCH_MQTT, { protocolVersion: 5 })
const { stream } = client
if (NAGLE !== 'on' && stream instanceof Socket) stream.once('connect', () => stream.setNoDelay(true))
const connected = new Promise((resolve) => client.once('connect', resolve))

client.on('message', async (topic, _payload, { properties }) => {
  const started = performance.now()
  const [, hub, , app, , command] = topic.split('/')
  const data = await call('PUT', `/${app}/${command}`)
  const duration_ms = Math.round(performance.now() - started)
  const answer = JSON.stringify({ ok: true, command, hub, app, transaction: null, data, duration_ms })
  client.publish(properties?.responseTopic ?? '', answer, {
    qos: 1,
    properties: { ...(properties?.correlationData && { correlationData: properties.correlationData }) },
  })
})

const [apps] = await Promise.all([call('GET', '') as Promise<Record<string, AppRecord>>, connected])
await client.subscribeAsync(`${base}/+/app/+/cmd/#`, { qos: 1 })
await Promise.all(Object.values(apps).map(publish))
await client.publishAsync(`${base}/bridge/state`, 'online', { qos: 1, retain: true })

const manager = new Manager(BENCH_HUB, { transports: ['websocket'] })
manager
  .socket('/')
  .emit('handshakeClient', { token: BENCH_KEY }, (_: unknown, { namespace }: { namespace: string }) => {
    const api = manager.socket(namespace)
    api.on('homey:manager:apps', (_event: string, record: AppRecord) => publish(record))
    api.emit('subscribe', 'homey:manager:apps', () => {})
  })
