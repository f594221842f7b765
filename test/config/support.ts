import { basename, dirname } from 'node:path'
import { type Loaded, type LoadOptions, loadConfig } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/mistakes.ts'

const FILE = 'hub2mqtt.yaml'
export const HUB = 'hubs:\n  home:\n    url: http://192.168.1.20\n    api_key: key-of-the-hub\n'
export const HUB_ENV = { HUB2MQTT_HUB_URL: 'http://192.168.1.20', HUB2MQTT_HUB_API_KEY: 'key-of-the-hub' }

/** A string that looks like a certificate. */
export const PEM = '-----BEGIN CERTIFICATE-----'
export const PEM_KEY = '-----BEGIN PRIVATE KEY-----'

export interface Given {
  /** The text of the configuration file. By default, there is no file. */
  readonly yaml?: string
  readonly env?: Record<string, string | undefined>
  /** The texts of other files, keyed by the end of their path; an empty key matches every other file. */
  readonly files?: Record<string, string>
  readonly requireHub?: boolean
  readonly onDisk?: boolean
}

function request({ yaml, env = {}, files = {}, requireHub = true, onDisk = false }: Given): LoadOptions {
  const all = Object.entries({ ...(yaml === undefined ? {} : { [FILE]: yaml }), ...files })
  return {
    file: yaml === undefined ? undefined : FILE,
    env,
    requireHub,
    ...(!onDisk && {
      readFolder: (folder) =>
        Object.keys(files).flatMap((name) => (dirname(name) === basename(folder) ? [basename(name)] : [])),
    }),
    readFile(path) {
      const found = all.find(([name]) => path.endsWith(name))
      if (found === undefined) throw Object.assign(new Error(`no such file: ${path}`), { code: 'ENOENT' })
      return found[1]
    },
  }
}

export const load = (given: Given): Loaded => loadConfig(request(given))

export function mistakesOf(given: Given): readonly string[] {
  try {
    load(given)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes
    throw error
  }
}

/** Converts objects to maps, because a parsed configuration file contains maps. */
export function maps(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(maps)
  if (typeof value !== 'object' || value === null || value instanceof Map) return value
  return new Map(Object.entries(value).map(([key, entry]) => [key, maps(entry)]))
}
