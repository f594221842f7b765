import { spawnSync } from 'node:child_process'
import { globSync, mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { loadConfig, variables } from '../../src/config/load.ts'
import { VERSION } from '../../src/version.ts'
import { hasProgram } from '../support/skipped.ts'

const text = (path: string) => readFileSync(path, 'utf8')

describe('the files that others run it by', () => {
  it.each([
    'Dockerfile',
    'docker-compose.yml',
    'config/compose.home-assistant.yml',
    'config/compose.fleet.yml',
    'config/kubernetes/hub2mqtt.yaml',
    'config/systemd/hub2mqtt.service',
    'config/home-assistant-app/run.js',
  ])('%s names no variable that there is not', (path) => {
    const own = new Set([...variables, 'HUB2MQTT_IMAGE'])
    for (const [name] of text(path).matchAll(/\bHUB2MQTT_[A-Z_]+\b/g)) expect(own, name).toContain(name)
  })

  it('name the image by this version, wherever they name it', () => {
    const tags = globSync(['*.md', '*.yml', 'Dockerfile', 'docs/**/*.md', 'config/**/*.{md,sh,yaml,yml}']).flatMap(
      (path) => [...text(path).matchAll(/\bhub2mqtt:(\d+\.[\w.-]+)/g)].map(([, tag]) => ({ path, tag })),
    )
    expect(new Set(tags.map(({ path }) => path)).size).toBeGreaterThanOrEqual(3)
    for (const { path, tag } of tags) expect(tag, path).toBe(VERSION)
  })
})

describe('the demo of the compose file', () => {
  it('has a configuration that loads, with the secrets where they are mounted', () => {
    const readFile = (path: string) => text(path.replace('/run/secrets', 'config/demo/secrets'))
    const { config } = loadConfig({
      file: 'config/demo/hub2mqtt/hub2mqtt.yaml',
      env: {},
      readFile,
      isExposed: () => false,
    })
    expect(config.hubs['home']?.api_key).toBe(text('config/demo/secrets/hub_api_key').trim())
    // Nothing is set that would keep a user's file from setting it.
    const { services } = parse(text('docker-compose.yml'), { merge: true })
    expect(Object.keys(services.hub2mqtt.environment)).toEqual(['HUB2MQTT_CONFIG'])
    expect(services.hub2mqtt.env_file.join()).toContain('./config/demo/hub2mqtt}/hub2mqtt.env')
    expect(text('config/demo/hub2mqtt/hub2mqtt.env')).not.toMatch(/^[^#\n]/m)
  })
})

describe('the Kubernetes manifest', () => {
  const documents = parseAllDocuments(text('config/kubernetes/hub2mqtt.yaml')).map((document) => document.toJS())
  const ofKind = (kind: string) => documents.find((document) => document.kind === kind)

  it('holds a configuration that loads, with the secrets where they are mounted', () => {
    const { volumes, containers } = ofKind('Deployment').spec.template.spec
    const mount = containers[0].volumeMounts.find(({ name }: { name: string }) => name === 'secrets').mountPath
    const secrets: Record<string, string> = ofKind('Secret').stringData
    const files = new Map(Object.entries(secrets).map(([name, value]) => [join(mount, name), value]))
    files.set('hub2mqtt.yaml', ofKind('ConfigMap').data['hub2mqtt.yaml'])
    const { config } = loadConfig({
      file: 'hub2mqtt.yaml',
      env: {},
      readFile: (path) => files.get(path) ?? expect.fail(`nothing is mounted at ${path}`),
    })
    expect(config.hubs['home']?.api_key).toBe(secrets['hub_api_key'])
    expect(config.mqtt.password).toBe(secrets['mqtt_password'])
    expect(volumes).toHaveLength(2)
  })

  it('never runs two at once, and does not start it again because a hub is down', () => {
    const { replicas, strategy, template } = ofKind('Deployment').spec
    expect({ replicas, strategy }).toEqual({ replicas: 1, strategy: { type: 'Recreate' } })
    const [{ livenessProbe, readinessProbe }] = template.spec.containers
    expect(livenessProbe.httpGet.path).toBe('/livez')
    expect(readinessProbe.httpGet.path).toBe('/readyz')
  })

  it('has one for a fleet that loads too, and names its servers as the cluster does', () => {
    const all = parseAllDocuments(text('config/kubernetes/fleet.yaml')).map((document) => document.toJS())
    const named = (kind: string, name: string) =>
      all.find((document) => document.kind === kind && document.metadata.name === name)
    const secrets: Record<string, string> = named('Secret', 'hub2mqtt').stringData
    const files = new Map(Object.entries(secrets).map(([name, value]) => [`/run/secrets/hub2mqtt/${name}`, value]))
    files.set('hub2mqtt.yaml', named('ConfigMap', 'hub2mqtt').data['hub2mqtt.yaml'])
    const { config } = loadConfig({
      file: 'hub2mqtt.yaml',
      env: {},
      readFile: (path) => files.get(path) ?? expect.fail(`nothing is mounted at ${path}`),
    })
    const servers = named('StatefulSet', 'nats').spec
    const hosts = Array.from({ length: servers.replicas }, (_, i) => `nats-${i}.${servers.serviceName}.hub2mqtt.svc`)
    expect(config.fleet.nats).toEqual(hosts.map((host) => `nats://${host}:4222`))
    for (const host of hosts) expect(named('ConfigMap', 'nats').data['nats.conf']).toContain(`nats://${host}:6222`)
    expect(config.fleet.password).toBe(secrets['nats_password'])
    expect(named('StatefulSet', 'hub2mqtt').spec.replicas).toBe(3)
  })

  const validator = process.env['KUBERNETES_VALIDATE'] ?? 'kubernetes-validate'
  const hasValidator = hasProgram(
    validator,
    ['--version'],
    'the test against the schema of Kubernetes',
    'pip install kubernetes-validate, or its path in KUBERNETES_VALIDATE',
  )
  it.runIf(hasValidator)('fits the schema of Kubernetes', () => {
    const { status, stderr } = spawnSync(validator, ['--strict', 'config/kubernetes/hub2mqtt.yaml'], {
      encoding: 'utf8',
    })
    expect(status, stderr).toBe(0)
  })
})

const hasAnalyze = hasProgram(
  'systemd-analyze',
  ['--version'],
  'the test of the systemd unit',
  'systemd brings it along',
)

describe.runIf(hasAnalyze)('the systemd unit', () => {
  it('is well formed and little exposed', () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'hub2mqtt-unit-'))
    // The analysis looks for the program and its folder, which are elsewhere here.
    const unit = join(folder.path, 'hub2mqtt.service')
    writeFileSync(
      unit,
      text('config/systemd/hub2mqtt.service')
        .replaceAll('/usr/bin/node', process.execPath)
        .replace('WorkingDirectory=/opt/hub2mqtt', 'WorkingDirectory=/'),
    )
    const analyze = (...args: string[]) => spawnSync('systemd-analyze', [...args, unit], { encoding: 'utf8' })
    expect(analyze('verify').stderr).not.toContain('hub2mqtt.service')
    const { stdout } = analyze('security', '--offline=true', '--no-pager')
    expect(Number(/exposure level for .*: ([0-9.]+)/.exec(stdout)?.[1])).toBeLessThan(2)
  })
})
