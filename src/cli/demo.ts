/** `hub2mqtt demo`: what its configuration differs in, and what it tells people to type. */

import type { Config } from '../config/options.ts'
import { firstFreePort } from './ports.ts'

/** Below this the demo keeps on a broker that others use. */
const DEMO_BASE = 'hub2mqtt-demo'

type Variables = Readonly<Record<string, string>>

/** The configuration of a demo on a broker of others. */
export function onBroker(url: string): Variables {
  return { HUB2MQTT_MQTT_URL: url, HUB2MQTT_MQTT_BASE_TOPIC: DEMO_BASE, HUB2MQTT_DISCOVERY_FORMAT: 'off' }
}

/** Other ports, where those of the configuration are taken. */
export async function freePorts({ mqtt, http }: Config): Promise<Variables> {
  const { embedded } = mqtt
  const wanted = [
    ...(mqtt.url === null ? ([['HUB2MQTT_MQTT_EMBEDDED_PORT', embedded.host, embedded.port]] as const) : []),
    ...(http.enabled ? ([['HUB2MQTT_HTTP_PORT', http.host, http.port]] as const) : []),
  ]
  const variables: Record<string, string> = {}
  for (const [name, host, port] of wanted) {
    const free = await firstFreePort(host, port)
    if (free !== port) variables[name] = String(free)
  }
  return variables
}

/** What to type next, with the real address of the broker. `page`: the address that logs in, where that needs no password. */
export function invitation({ mqtt, http }: Config, app: string, page?: string): string {
  const url = new URL(mqtt.url?.[0] ?? `mqtt://${mqtt.embedded.host}:${mqtt.embedded.port}`)
  const host = url.hostname === '127.0.0.1' ? '' : ` -h ${url.hostname}`
  const port = url.port === '' || url.port === '1883' ? '' : ` -p ${url.port}`
  const to = `${host}${port}`
  return [
    '',
    'The demo runs. In another terminal:',
    '',
    `  mosquitto_sub${to} -v -t '${mqtt.base_topic}/#'`,
    `  mosquitto_pub${to} -t '${mqtt.base_topic}/home/app/${app}/cmd/restart' -n`,
    '',
    ...(http.enabled && http.page ? [`The page:           ${page ?? `http://${http.host}:${http.port}/`}`] : []),
    ...(http.enabled ? [`Health and metrics: http://${http.host}:${http.port}/healthz`] : []),
    'Ctrl-C ends it.',
    '',
  ].join('\n')
}
