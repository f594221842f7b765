import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { safeParse } from 'valibot'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { VERSION } from '../../src/base/version.ts'
import { loadConfig } from '../../src/config/load.ts'
import { temporaryFolder } from '../support/at-end.ts'
import { available } from '../support/skipped.ts'
import { appManifest, repository, translations } from './supervisor.ts'

const app = 'config/home-assistant-app'
const text = (path: string) => readFileSync(path, 'utf8')
const { environment, namesBroker } = await import(new URL(`../../${app}/run.js`, import.meta.url).href)
const manifest = parse(text(`${app}/config.yaml`))

const sizeOf = (path: string) => {
  const bytes = readFileSync(path)
  expect(bytes.toString('latin1', 1, 4)).toBe('PNG')
  return [bytes.readUInt32BE(16), bytes.readUInt32BE(20)]
}

const objections = (schema: Parameters<typeof safeParse>[0], value: unknown) =>
  safeParse(schema, value).issues?.map(({ message, path }) => {
    const place = (path ?? []).map(({ key }: { key?: unknown }) => String(key)).join('.')
    return `${place}: ${message}`
  }) ?? []

describe('the repository of the Home Assistant app', () => {
  it('has one app', () => {
    expect(parse(text('repository.yaml'))).toEqual({
      name: 'hub2mqtt',
      url: manifest.url,
      maintainer: expect.any(String),
    })
    // Home Assistant treats every file with this name, in any folder, as the configuration of an app.
    const found = globSync('**/config.{yaml,yml,json}', { exclude: ['node_modules/**'] })
    expect(found).toEqual([`${app}/config.yaml`])
  })

  it('has the files that Home Assistant shows: texts, changelog, icon and logo', () => {
    expect(sizeOf(`${app}/icon.png`)).toEqual([128, 128])
    expect(sizeOf(`${app}/logo.png`)).toEqual([250, 100])
    expect(text(`${app}/CHANGELOG.md`)).toBe(text('CHANGELOG.md'))
    expect(text(`${app}/DOCS.md`)).toContain('hub2mqtt.yaml')
  })
})

describe('the Home Assistant app', () => {
  const options = { hub_url: 'http://10.0.0.1', hub_api_key: 'k', log_level: 'debug', base_topic: '', read_only: true }
  const broker = { host: 'core-mosquitto', port: 1883, ssl: false, username: 'addons', password: 'p' }

  it('has the current version, and the image that a release publishes', () => {
    expect(manifest.version).toBe(VERSION)
    expect(manifest.image).toMatch(/^[a-z.]+\/[a-z0-9-]+\/hub2mqtt-home-assistant$/)
  })

  it('passes the validation of the Supervisor without warnings', () => {
    expect(objections(appManifest, manifest)).toEqual([])
    expect(objections(translations, parse(text(`${app}/translations/en.yaml`)))).toEqual([])
    expect(objections(repository, parse(text('repository.yaml')))).toEqual([])
  })

  it('requires the minimum version of Home Assistant in the documentation', () => {
    const [, least] = /^\| Home Assistant \| ([\d.]+) \|/m.exec(text('docs/compatibility.md')) ?? []
    expect(manifest.homeassistant).toBe(`${least}.0`)
  })

  it('has no key that only repeats a default, which the linter of app repositories rejects', () => {
    expect(manifest).not.toMatchObject({ startup: 'application' })
    expect(manifest).toMatchObject({ init: false, ingress: true })
    expect(globSync(`${app}/build.*`)).toEqual([])
  })

  it('shows the page in Home Assistant, and trusts only the Supervisor as a proxy', () => {
    expect(text('Dockerfile')).toContain('ENV HUB2MQTT_HTTP_INGRESS=true HUB2MQTT_HTTP_TRUSTED_PROXIES=172.30.32.2\n')
  })

  it('forwards and explains every option', () => {
    const { configuration, network } = parse(text(`${app}/translations/en.yaml`))
    for (const option of Object.keys(manifest.schema))
      expect(text(`${app}/run.js`)).toContain(`  ${option}: 'HUB2MQTT_`)
    expect(Object.keys(configuration)).toEqual(Object.keys(manifest.schema))
    expect(Object.keys(network)).toEqual(Object.keys(manifest.ports))
    for (const option of Object.keys(manifest.options)) expect(manifest.schema).toHaveProperty(option)
  })

  it('accepts the initial values of the form', () => {
    for (const [option, value] of Object.entries(manifest.options)) {
      const [, pattern] = /^match\((.*)\)\?$/.exec(manifest.schema[option]) ?? []
      if (pattern !== undefined) expect(value).toMatch(new RegExp(pattern))
    }
    expect(environment(manifest.options, undefined, undefined)).toEqual({})
  })

  it('uses the broker of Home Assistant, with a valid configuration', () => {
    expect(loadConfig({ env: environment(options, broker) }).config.mqtt.username).toBe('addons')
    expect(environment(options, broker)).toEqual({
      HUB2MQTT_HUB_URL: 'http://10.0.0.1',
      HUB2MQTT_HUB_API_KEY: 'k',
      HUB2MQTT_LOG_LEVEL: 'debug',
      HUB2MQTT_COMMANDS_READ_ONLY: 'true',
      HUB2MQTT_MQTT_URL: 'mqtt://core-mosquitto:1883',
      HUB2MQTT_MQTT_USERNAME: 'addons',
      HUB2MQTT_MQTT_PASSWORD: 'p',
    })
  })

  it('uses the broker in its options, without the credentials of Home Assistant', () => {
    const own = environment({ ...options, mqtt_url: 'mqtts://elsewhere' }, broker)
    expect(own).toMatchObject({ HUB2MQTT_MQTT_URL: 'mqtts://elsewhere' })
    expect(own).not.toHaveProperty('HUB2MQTT_MQTT_PASSWORD')
  })

  it('reads hubs, a broker and all other options from its file', () => {
    const [, example = ''] = /```yaml\n(.*?)```/s.exec(text(`${app}/DOCS.md`)) ?? []
    expect(namesBroker(example)).toBe(false)
    expect(namesBroker(`${example}mqtt: { url: mqtt://10.0.0.9 }\n`)).toBe(true)
    // hub2mqtt must report the mistake, and not that a broker is missing.
    expect(namesBroker('mqtt: [')).toBe(true)
    const env = environment(manifest.options, broker, '/config/hub2mqtt.yaml')
    const { config } = loadConfig({ env, readFile: (path) => (path === env.HUB2MQTT_CONFIG ? example : 'key') })
    expect(Object.keys(config.hubs)).toEqual(['home', 'cabin'])
    expect(config.mqtt.username).toBe('addons')
  })

  const hasShell = available(process.platform !== 'win32', 'the assembly of a local app', 'it is a shell script')
  it.runIf(hasShell)('can be assembled as a local app, which is built instead of pulled', () => {
    const folder = temporaryFolder()
    execFileSync('sh', [`${app}/assemble.sh`, folder])
    const { image, ...rest } = manifest
    expect(image).toBeDefined()
    expect(parse(text(join(folder, 'config.yaml')))).toEqual(rest)
    expect(text(join(folder, 'Dockerfile'))).toContain('\nARG VARIANT=home-assistant\n')
    expect(text(join(folder, 'CHANGELOG.md'))).toBe(text('CHANGELOG.md'))
    // Every file that the build copies must exist.
    for (const [, sources = ''] of text('Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm)) {
      for (const source of sources.split(' ')) expect(globSync(join(folder, source)), source).toHaveLength(1)
    }
  })
})
