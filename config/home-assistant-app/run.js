/**
 * The first process of the Home Assistant app. Passes the app's options, the path of its file and the Supervisor's broker
 * to hub2mqtt in the environment, drops root (needed to read the options), and runs hub2mqtt in the same process.
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
const USER_ID = 1000
const TIMEOUT_MS = 10_000

/** The variable of hub2mqtt that corresponds to each option of the app. */
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

export function brokerOptions({ host, port, ssl, username, password }) {
  return {
    mqtt_url: `${ssl ? 'mqtts' : 'mqtt'}://${host}:${port}`,
    mqtt_username: username,
    mqtt_password: password,
  }
}

/** Returns the environment for hub2mqtt. A broker in the options takes precedence over the Supervisor's broker. */
export function environment(options, broker, file) {
  const all = options.mqtt_url || broker === undefined ? options : { ...options, ...brokerOptions(broker) }
  const given = Object.entries(VARIABLES).filter(([option]) => ![undefined, null, ''].includes(all[option]))
  const own = given.map(([option, variable]) => [variable, String(all[option])])
  return Object.fromEntries(file === undefined ? own : [['HUB2MQTT_CONFIG', file], ...own])
}

/** Returns whether the file sets `mqtt.url`, or cannot be parsed: hub2mqtt then reports the mistake, and exits. */
export function namesBroker(text) {
  try {
    return Boolean(parse(text)?.mqtt?.url)
  } catch {
    return true
  }
}

/** Makes the folder readable only by hub2mqtt's user and root, because the folder contains keys. */
function makePrivate(folder) {
  try {
    const inside = readdirSync(folder, { recursive: true }).map((name) => join(folder, name))
    for (const path of [folder, ...inside]) lchownSync(path, USER_ID, USER_ID)
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
  if (file !== undefined) makePrivate(FOLDER)
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
  process.setgroups([USER_ID])
  process.setgid(USER_ID)
  process.setuid(USER_ID)
  process.argv.splice(1, 1, PROGRAM.pathname)
  await import(PROGRAM.href)
}
