import { spawnSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { VERSION } from '../../src/base/version.ts'
import { loadConfig, variables } from '../../src/config/load.ts'
import { performed } from '../cli/support.ts'
import { listening, temporaryFolder } from '../support/at-end.ts'
import { runProgram } from '../support/process.ts'
import { PROGRAM } from '../support/program.ts'
import { available, hasProgram } from '../support/skipped.ts'

const text = (path: string) => readFileSync(path, 'utf8')

describe('the deployment files', () => {
  it.each([
    'Dockerfile',
    'docker-compose.yml',
    'config/compose.home-assistant.yml',
    'config/compose.fleet.yml',
    'config/kubernetes/hub2mqtt.yaml',
    'config/systemd/hub2mqtt.service',
    'config/home-assistant-app/run.js',
  ])('%s uses only existing variables', (path) => {
    const own = new Set([...variables, 'HUB2MQTT_IMAGE'])
    for (const [name] of text(path).matchAll(/\bHUB2MQTT_[A-Z_]+\b/g)) expect(own, name).toContain(name)
  })

  it('name the image with the current version', () => {
    const tags = globSync(['*.md', '*.yml', 'Dockerfile', 'docs/**/*.md', 'config/**/*.{md,sh,yaml,yml}']).flatMap(
      (path) => [...text(path).matchAll(/\bhub2mqtt:(\d+\.[\w.-]+)/g)].map(([, tag]) => ({ path, tag })),
    )
    expect(new Set(tags.map(({ path }) => path)).size).toBeGreaterThanOrEqual(3)
    for (const { path, tag } of tags) expect(tag, path).toBe(VERSION)
  })
})

it('the example with two hubs passes check-config, and has everything that two hubs need', async () => {
  const path = 'config/two-hubs.example.yaml'
  const { status, stdout, stderr } = await performed(['check-config', '--config', path])
  expect({ status, problems: stderr.split('\n').filter((line) => line && !line.includes('chmod 600')) }).toEqual({
    status: 0,
    problems: [],
  })
  const { hubs, mqtt } = parse(stdout)
  expect(Object.keys(hubs)).toEqual(['home', 'cabin'])
  expect(new Set(Object.values<{ url: string }>(hubs).map(({ url }) => url)).size).toBe(2)
  expect(mqtt.url).toBe('mqtt://broker:1883')
  expect(stdout).not.toContain('put-')
})

describe('the build of the image', () => {
  const hasShell = available(process.platform !== 'win32', 'the warm-up of the image', 'it is a shell script')
  it.runIf(hasShell)('waits for its own demo, not for another daemon', async () => {
    const asked: (string | undefined)[] = []
    const other = createServer(({ url }, response) => {
      asked.push(url)
      response.end('{"ready":true}')
    })
    const port = await listening(other)
    const folder = temporaryFolder()
    const program = `#!/bin/sh\nexec '${process.execPath}' '${PROGRAM}' "$@"\n`
    writeFileSync(join(folder, 'hub2mqtt'), program, { mode: 0o755 })
    const [, warmUp = ''] = /^RUN ((?:.*\\\n)*?.*hub2mqtt demo(?:.*\\\n)*.*)$/m.exec(text('Dockerfile')) ?? []
    const ran = await runProgram('sh', ['-c', warmUp.replaceAll('/tmp/', `${folder}/`)], {
      env: { PATH: `${folder}:${process.env['PATH']}`, HUB2MQTT_HTTP_PORT: String(port) },
    })
    expect(ran).toMatchObject({ status: 0, stderr: '' })
    expect(asked).toEqual([])
  })
})

it('the demo of the compose file has a valid configuration with the mounted secrets', () => {
  const readFile = (path: string) => text(path.replace('/run/secrets', 'config/demo/secrets'))
  const { config } = loadConfig({ file: 'config/demo/hub2mqtt/hub2mqtt.yaml', env: {}, readFile })
  expect(config.hubs['home']?.api_key).toBe(text('config/demo/secrets/hub_api_key').trim())
  // A variable set in the compose file would override the user's file.
  const { services } = parse(text('docker-compose.yml'), { merge: true })
  expect(Object.keys(services.hub2mqtt.environment)).toEqual(['HUB2MQTT_CONFIG'])
  expect(services.hub2mqtt.env_file.join()).toContain('./config/demo/hub2mqtt}/hub2mqtt.env')
  expect(text('config/demo/hub2mqtt/hub2mqtt.env')).not.toMatch(/^[^#\n]/m)
})

describe('the Kubernetes manifest', () => {
  const documentsIn = (name: string) =>
    parseAllDocuments(text(`config/kubernetes/${name}.yaml`)).map((document) => document.toJS())
  const documents = documentsIn('hub2mqtt')
  const ofKind = (kind: string) => documents.find((document) => document.kind === kind)
  /** Loads the configuration of a manifest, which may read only the secrets that are mounted in the folder. */
  const configWith = (configMap: { data: Record<string, string> }, secrets: Record<string, string>, folder: string) => {
    const files = new Map(Object.entries(secrets).map(([name, value]) => [join(folder, name), value]))
    const mounted = (path: string) => files.get(path) ?? expect.fail(`nothing is mounted at ${path}`)
    const file = 'hub2mqtt.yaml'
    const readFile = (path: string) => (path === file ? (configMap.data[file] ?? '') : mounted(path))
    return loadConfig({ file, env: {}, readFile }).config
  }

  it('has a valid configuration with the mounted secrets', () => {
    const { volumes, containers } = ofKind('Deployment').spec.template.spec
    const mount = containers[0].volumeMounts.find(({ name }: { name: string }) => name === 'secrets').mountPath
    const secrets: Record<string, string> = ofKind('Secret').stringData
    const config = configWith(ofKind('ConfigMap'), secrets, mount)
    expect(config.hubs['home']?.api_key).toBe(secrets['hub_api_key'])
    expect(config.mqtt.password).toBe(secrets['mqtt_password'])
    expect(volumes).toHaveLength(2)
  })

  it('never runs two pods at the same time, and does not restart the pod because a hub is down', () => {
    const { replicas, strategy, template } = ofKind('Deployment').spec
    expect({ replicas, strategy }).toEqual({ replicas: 1, strategy: { type: 'Recreate' } })
    const [{ livenessProbe, readinessProbe }] = template.spec.containers
    expect(livenessProbe.httpGet.path).toBe('/livez')
    expect(readinessProbe.httpGet.path).toBe('/readyz')
  })

  it('has a variant for a fleet with a valid configuration and the names of the NATS servers in the cluster', () => {
    const all = documentsIn('fleet')
    const named = (kind: string, name: string) =>
      all.find((document) => document.kind === kind && document.metadata.name === name)
    const secrets: Record<string, string> = named('Secret', 'hub2mqtt').stringData
    const config = configWith(named('ConfigMap', 'hub2mqtt'), secrets, '/run/secrets/hub2mqtt')
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
    'the test with the Kubernetes schema',
    'pip install kubernetes-validate, or its path in KUBERNETES_VALIDATE',
  )
  it.runIf(hasValidator)('matches the Kubernetes schema', () => {
    const { status, stderr } = spawnSync(validator, ['--strict', 'config/kubernetes/hub2mqtt.yaml'], {
      encoding: 'utf8',
    })
    expect(status, stderr).toBe(0)
  })
})

const hasAnalyze = hasProgram('systemd-analyze', ['--version'], 'the test of the systemd unit', 'part of systemd')

it.runIf(hasAnalyze)('the systemd unit is valid and has a low exposure level', () => {
  const folder = temporaryFolder()
  // `systemd-analyze` needs existing paths for the program and its folder.
  const unit = join(folder, 'hub2mqtt.service')
  writeFileSync(
    unit,
    text('config/systemd/hub2mqtt.service')
      .replaceAll('/opt/hub2mqtt/bin/hub2mqtt', process.execPath)
      .replace('WorkingDirectory=/opt/hub2mqtt', 'WorkingDirectory=/'),
  )
  const analyze = (...args: string[]) => spawnSync('systemd-analyze', [...args, unit], { encoding: 'utf8' })
  expect(analyze('verify').stderr).not.toContain('hub2mqtt.service')
  const { stdout } = analyze('security', '--offline=true', '--no-pager')
  expect(Number(/exposure level for .*: ([0-9.]+)/.exec(stdout)?.[1])).toBeLessThan(2)
})
