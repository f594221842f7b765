/**
 * The first process of the Home Assistant app: turns the app's options, and the broker that the Supervisor knows of,
 * into the environment that hub2mqtt reads; gives up root, which alone may read the options; and becomes hub2mqtt.
 */
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const OPTIONS = '/data/options.json'
const SUPERVISOR = 'http://supervisor'
const PROGRAM = new URL('../../src/bin.js', import.meta.url)
const NOBODY = 1000
const TIMEOUT_MS = 10_000

/** Option of the app → variable of hub2mqtt. */
const VARIABLES = {
  hub_url: 'HUB2MQTT_HUB_URL',
  hub_api_key: 'HUB2MQTT_HUB_API_KEY',
  hub_name: 'HUB2MQTT_HUB_NAME',
  mqtt_url: 'HUB2MQTT_MQTT_URL',
  mqtt_username: 'HUB2MQTT_MQTT_USERNAME',
  mqtt_password: 'HUB2MQTT_MQTT_PASSWORD',
  base_topic: 'HUB2MQTT_MQTT_BASE_TOPIC',
  read_only: 'HUB2MQTT_COMMANDS_READ_ONLY',
  log_level: 'HUB2MQTT_LOG_LEVEL',
}

/** The broker as the Supervisor tells of it, in the words of the options. */
export function brokerOptions({ host, port, ssl, username, password }) {
  return {
    mqtt_url: `${ssl ? 'mqtts' : 'mqtt'}://${host}:${port}`,
    mqtt_username: username,
    mqtt_password: password,
  }
}

/** The environment for hub2mqtt; a broker among the options wins over the Supervisor's. */
export function environment(options, broker) {
  const all = options.mqtt_url || broker === undefined ? options : { ...options, ...brokerOptions(broker) }
  const given = Object.entries(VARIABLES).filter(([option]) => ![undefined, null, ''].includes(all[option]))
  return Object.fromEntries(given.map(([option, variable]) => [variable, String(all[option])]))
}

async function supervisorsBroker() {
  const token = process.env.SUPERVISOR_TOKEN
  if (token === undefined) return undefined
  try {
    const response = await fetch(`${SUPERVISOR}/services/mqtt`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    return response.ok ? (await response.json()).data : undefined
  } catch {
    return undefined
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const options = JSON.parse(readFileSync(OPTIONS, 'utf8'))
  Object.assign(process.env, environment(options, options.mqtt_url ? undefined : await supervisorsBroker()))
  if (process.env.HUB2MQTT_MQTT_URL === undefined) {
    console.error('hub2mqtt: no MQTT broker; install the Mosquitto app, or give mqtt_url')
    process.exit(1)
  }
  delete process.env.SUPERVISOR_TOKEN
  process.setgroups([NOBODY])
  process.setgid(NOBODY)
  process.setuid(NOBODY)
  process.argv.splice(1, 1, PROGRAM.pathname)
  await import(PROGRAM.href)
}
