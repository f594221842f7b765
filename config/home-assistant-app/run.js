/**
 * The first process of the Home Assistant app: converts the app's options, the file in its folder, and the Supervisor's
 * broker to the environment that hub2mqtt reads; drops root, which is needed to read the options; and becomes hub2mqtt.
 */
import { chmodSync, existsSync, lchownSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parse } from 'yaml'

const OPTIONS = '/data/options.json'
const FOLDER = '/config'
const FILE = join(FOLDER, 'hub2mqtt.yaml')
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
  http_password: 'HUB2MQTT_HTTP_PASSWORD',
  read_only: 'HUB2MQTT_COMMANDS_READ_ONLY',
  log_level: 'HUB2MQTT_LOG_LEVEL',
}

/** The Supervisor's broker as options of the app. */
export function brokerOptions({ host, port, ssl, username, password }) {
  return {
    mqtt_url: `${ssl ? 'mqtts' : 'mqtt'}://${host}:${port}`,
    mqtt_username: username,
    mqtt_password: password,
  }
}

/** The environment for hub2mqtt, which wins over the file; a broker among the options wins over the Supervisor's. */
export function environment(options, broker, file) {
  const all = options.mqtt_url || broker === undefined ? options : { ...options, ...brokerOptions(broker) }
  const given = Object.entries(VARIABLES).filter(([option]) => ![undefined, null, ''].includes(all[option]))
  const own = given.map(([option, variable]) => [variable, String(all[option])])
  return Object.fromEntries(file === undefined ? own : [['HUB2MQTT_CONFIG', file], ...own])
}

/** Whether the text of a file names a broker. hub2mqtt itself reports mistakes in the file. */
export function namesBroker(text) {
  try {
    return Boolean(parse(text)?.mqtt?.url)
  } catch {
    return false
  }
}

/** Makes a folder private to the user that runs hub2mqtt, because it contains keys. Root can still change it. */
function own(folder) {
  try {
    const inside = readdirSync(folder, { recursive: true }).map((name) => join(folder, name))
    for (const path of [folder, ...inside]) lchownSync(path, NOBODY, NOBODY)
    chmodSync(folder, 0o700)
  } catch (error) {
    console.error(`hub2mqtt: ${folder} cannot be made private (${error.code}); continuing`)
  }
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

function fail(reason) {
  console.error(`hub2mqtt: ${reason}`)
  process.exit(1)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const options = JSON.parse(readFileSync(OPTIONS, 'utf8'))
  const file = existsSync(FILE) ? FILE : undefined
  if (file !== undefined) own(FOLDER)
  const named = Boolean(options.mqtt_url) || (file !== undefined && namesBroker(readFileSync(file, 'utf8')))
  const broker = named ? undefined : await supervisorsBroker()
  if (!named && broker === undefined) {
    fail('no MQTT broker; install the Mosquitto app, or set mqtt_url in the form or mqtt.url in hub2mqtt.yaml')
  }
  if (!options.hub_url && file === undefined) {
    fail("no hub; set hub_url and hub_api_key in the form, or hubs in the file hub2mqtt.yaml in this app's folder")
  }
  Object.assign(process.env, environment(options, broker, file))
  delete process.env.SUPERVISOR_TOKEN
  process.setgroups([NOBODY])
  process.setgid(NOBODY)
  process.setuid(NOBODY)
  process.argv.splice(1, 1, PROGRAM.pathname)
  await import(PROGRAM.href)
}
