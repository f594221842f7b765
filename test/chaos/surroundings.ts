import type { EmulatedHubOptions, Flavour } from '../../src/emulator/hub.ts'
import { population } from '../../src/emulator/population.ts'
import type { MosquittoOptions } from '../support/brokers.ts'
import { HUB, PUBLISHED_SETTING, publishedApps } from './model.ts'

export interface WorldOptions {
  readonly seed: number
  readonly flavour?: Flavour
  readonly preload?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly nodeOptions?: readonly string[]
}

export interface Secrets {
  readonly key: string
  readonly password: string
  readonly setting: string
  readonly watcher: string
}

export function secretsOf({ seed }: WorldOptions): Secrets {
  return {
    key: `canary-key-${seed}-q7`,
    password: `canary-password-${seed}-x3`,
    setting: `canary-setting-${seed}-z9`,
    watcher: `watching-${seed}`,
  }
}

export const CLIENT_ID = 'the-bridge'

/** An app id that needs every kind of escaping. */
const ODD_ID = 'odd/one+#% é'

/** The prefix of settings that exist so that the load can unset each of them once. */
export const SPARE = 'spare'
const SPARES = 60

export function hubOptions({ flavour = 'older' }: WorldOptions, { key, setting }: Secrets): EmulatedHubOptions {
  const spares = Array.from({ length: SPARES }, (_, index) => [`${SPARE}${index}`, index])
  const settings = { [PUBLISHED_SETTING]: 'plain', secret: setting, ...Object.fromEntries(spares) }
  return {
    keys: { [key]: ['hub.app', 'hub.speech', 'hub.system'] },
    apps: [...population(10), { id: ODD_ID, name: 'odd' }].map((app) => ({ ...app, settings })),
    flavour,
    settleMs: 30,
    memory: 100_000,
  }
}

export interface BrokerChanges extends MosquittoOptions {
  /** Whether the broker's configuration lacks the user of the bridge. */
  readonly withoutBridge?: boolean
}

export function brokerOptions(
  secrets: Secrets,
  { config = [], withoutBridge = false, ...changes }: BrokerChanges = {},
): MosquittoOptions {
  const users = { watcher: secrets.watcher, ...(withoutBridge ? {} : { bridge: secrets.password }) }
  const basics = ['max_queued_messages 0', 'max_inflight_messages 0', 'autosave_interval 1']
  return { persistent: true, ...changes, users, config: [...basics, ...config] }
}

/** The options that a reload may change, in the format of the configuration file. */
export interface FileChanges {
  readonly commands?: { readonly deny?: readonly string[]; readonly read_only?: boolean }
  readonly apps?: { readonly include?: readonly string[]; readonly exclude?: readonly string[] }
  readonly settings?: { readonly publish: Readonly<Record<string, Readonly<Record<string, unknown>>>> }
  readonly hubs?: Readonly<Record<string, { readonly url: string; readonly api_key: string }>>
  readonly log?: { readonly level: string }
}

/** Returns a configuration file, in JSON, which is valid YAML. The bridge's environment variables override the file. */
export function configFile({ commands, settings, ...others }: FileChanges = {}): string {
  const publish = Object.fromEntries(publishedApps.map((id) => [id, { [PUBLISHED_SETTING]: 'text' }]))
  return JSON.stringify({
    commands: { allow: ['*'], ...commands },
    settings: settings ?? { publish },
    log: { level: 'debug' },
    ...others,
  })
}

/** Returns the bridge's variables: as in production, but with shorter intervals, because episodes are short. */
export function environment(
  options: WorldOptions,
  { key, password }: Secrets,
  ports: { readonly hub: number; readonly broker: number },
): Readonly<Record<string, string>> {
  return {
    HUB_NAME: HUB,
    HUB_URL: `http://127.0.0.1:${ports.hub}`,
    HUB_API_KEY: key,
    HUB_POLL_INTERVAL: '1s',
    HUB_POLL_INTERVAL_FALLBACK: '1s',
    HUB_TIMEOUT: '2s',
    MQTT_URL: `mqtt://127.0.0.1:${ports.broker}`,
    MQTT_USERNAME: 'bridge',
    MQTT_PASSWORD: password,
    MQTT_KEEPALIVE: '2s',
    MQTT_CLIENT_ID: CLIENT_ID,
    HTTP_PORT: '0',
    LOG_FORMAT: 'json',
    ...options.env,
  }
}
