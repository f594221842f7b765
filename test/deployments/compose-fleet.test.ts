import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { memberNameOf } from '../../src/base/member-name.ts'
import { loadConfig } from '../../src/config/load.ts'
import { passwordHash } from '../support/brokers.ts'
import { natsPath } from '../support/nats.ts'

const SECRETS = 'config/demo/secrets'

const text = (path: string) => readFileSync(path, 'utf8')

interface Service {
  readonly image?: string
  readonly hostname?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly env_file?: readonly string[]
  readonly volumes?: readonly string[]
  readonly secrets?: readonly string[]
  readonly ports?: readonly string[]
  readonly depends_on?: Readonly<Record<string, unknown>>
  readonly healthcheck?: { readonly test: readonly string[] }
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
  readonly volumes: Readonly<Record<string, unknown>>
}

const base: Compose = parse(text('docker-compose.yml'), { merge: true })
const fleet: Compose = parse(text('config/compose.fleet.yml'), { merge: true })

/** Merges the two files as Docker Compose does. */
const services = new Map(
  Object.keys({ ...base.services, ...fleet.services }).map((name): [string, Service] => {
    const [one = {}, other = {}] = [base.services[name], fleet.services[name]]
    const all = <K extends 'volumes' | 'secrets' | 'ports'>(key: K) => [...(one[key] ?? []), ...(other[key] ?? [])]
    const environment = { ...one.environment, ...other.environment }
    const depends_on = { ...one.depends_on, ...other.depends_on }
    const lists = { volumes: all('volumes'), secrets: all('secrets'), ports: all('ports') }
    return [name, { ...one, ...other, ...lists, environment, depends_on }]
  }),
)
const secrets = { ...base.secrets, ...fleet.secrets }

const byDefault = (value: string) => value.replace(/\$\{\w+:-([^}]*)\}/g, '$1')
const named = (pattern: RegExp) => [...services].filter(([name]) => pattern.test(name))
const members = named(/^hub2mqtt/)

describe('the compose file of a fleet', () => {
  it('has three members with the same valid configuration and different names', () => {
    expect(members).toHaveLength(3)
    const loaded = members.map(([, service]) => {
      const { HUB2MQTT_CONFIG: path = '', ...env } = service.environment ?? {}
      const readFile = (file: string) => {
        const [, name = ''] = /^\/run\/secrets\/(\w+)$/.exec(file) ?? []
        if (name !== '') expect(service.secrets).toContain(name)
        return text(file.replace('/run/secrets', SECRETS))
      }
      const folder = byDefault(service.volumes?.find((volume) => volume.includes(':/etc/hub2mqtt:')) ?? '').split(
        ':',
      )[0]
      const file = path.replace('/etc/hub2mqtt', folder ?? '')
      return loadConfig({ file, env, readFile }).config
    })
    const [config] = loaded
    for (const other of loaded) expect(other).toEqual(config)
    const hosts = (urls: readonly string[] = []) => urls.map((url) => new URL(url).hostname)
    expect(hosts(config?.mqtt.url ?? [])).toEqual(named(/^mosquitto/).map(([name]) => name))
    expect(hosts(config?.fleet.nats)).toEqual(named(/^nats/).map(([name]) => name))
    expect(config?.fleet.password).toBe(text(`${SECRETS}/nats_password`).trim())
    expect(config?.fleet.member).toBeNull()
    const names = members.map(([, { hostname = '' }]) => memberNameOf(hostname))
    expect(names).toEqual(['hub2mqtt-1', 'hub2mqtt-2', 'hub2mqtt-3'])
  })

  it('gives all members the same settings as the single bridge', () => {
    const [own, ...others] = members.map(([, { environment, depends_on, ports, hostname, ...rest }]) => rest)
    for (const other of others) expect(other).toEqual(own)
  })

  it('mounts existing files, and declares every secret and volume that it uses', () => {
    const volumes = { ...base.volumes, ...fleet.volumes }
    for (const [name, service] of services) {
      for (const volume of [...(service.volumes ?? []), ...(service.env_file ?? [])].map(byDefault)) {
        const [source = ''] = volume.split(':')
        if (source.startsWith('.')) expect(existsSync(source), `${name}: ${source}`).toBe(true)
        else expect(volumes, name).toHaveProperty(source)
      }
      for (const secret of service.secrets ?? []) {
        expect(existsSync(byDefault(secrets[secret]?.file ?? '')), `${name}: ${secret}`).toBe(true)
      }
      for (const other of Object.keys(service.depends_on ?? {})) expect([...services.keys()], name).toContain(other)
    }
  })

  it('uses the same images as the other files', () => {
    const of = (pattern: RegExp) => new Set(named(pattern).map(([, { image = '' }]) => byDefault(image)))
    expect([...of(/^hub2mqtt/)]).toEqual([byDefault(base.services['hub2mqtt']?.image ?? '')])
    expect([...of(/^mosquitto/)]).toEqual([byDefault(base.services['mosquitto']?.image ?? '')])
    const manifest = parseAllDocuments(text('config/kubernetes/fleet.yaml')).map((document) => document.toJS())
    const nats = manifest.find(({ kind, metadata }) => kind === 'StatefulSet' && metadata.name === 'nats')
    expect([...of(/^nats/)]).toEqual([nats.spec.template.spec.containers[0].image])
  })

  it('restricts every service, limits its resources, checks its health, and opens ports only on this machine', () => {
    for (const [name, service] of services) {
      const locked = { restart: 'unless-stopped', read_only: true, cap_drop: ['ALL'], pids_limit: expect.any(Number) }
      expect(service, name).toMatchObject({ ...locked, mem_limit: expect.any(String), cpus: expect.any(Number) })
      expect(service, name).toMatchObject({ security_opt: ['no-new-privileges:true'] })
      expect(service, name).not.toHaveProperty('privileged')
      if (/^(mosquitto|nats)/.test(name)) expect(service.healthcheck?.test.length, name).toBeGreaterThan(1)
      for (const port of (service.ports ?? []).map(byDefault)) expect(port, name).toMatch(/^127\.0\.0\.1:\d+:\d+$/)
    }
    const taken = [...services.values()].flatMap(({ ports = [] }) => ports.map((port) => byDefault(port).split(':')[1]))
    expect(new Set(taken).size).toBe(taken.length)
  })

  it('lets the second broker log in at the first one', () => {
    const [, hash = ''] = /^broker:(.*)$/m.exec(text(`${SECRETS}/mosquitto_passwords`)) ?? []
    const [salt = ''] = hash.split('$').slice(3)
    expect(passwordHash(text(`${SECRETS}/mqtt_broker_password`).trim(), Buffer.from(salt, 'base64'))).toBe(hash)
    expect(text('config/fleet/acl')).toMatch(/^user broker\ntopic readwrite #$/m)
    expect(text('config/fleet/bridge.conf')).toMatch(/^remote_username broker$/m)
  })

  it('has NATS servers with routes to each other', () => {
    const routes = named(/^nats/).map(([name, { hostname }]) => {
      expect(hostname).toBe(name)
      return `nats://${name}:6222`
    })
    expect(text('config/fleet/nats.conf').match(/nats:\S+/g)).toEqual(routes)
  })

  it.skipIf(natsPath === undefined)('has a NATS configuration that NATS accepts with any password', () => {
    // Without the quotes, NATS would read this password as a number with a unit, and report an error.
    const env = { HOSTNAME: 'nats-1', NATS_PASSWORD: '"12e5f00d"' }
    const { status, stderr } = spawnSync(natsPath ?? '', ['-t', '-c', 'config/fleet/nats.conf'], {
      env,
      encoding: 'utf8',
    })
    expect(status, stderr).toBe(0)
  })
})
