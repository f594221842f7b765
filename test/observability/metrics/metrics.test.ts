import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Metrics, OTHER_APPS } from '../../../src/observability/metrics.ts'
import { freePort } from '../../support/ports.ts'
import { hasProgram } from '../../support/skipped.ts'
import { until } from '../../support/until.ts'
import { World } from '../../support/world.ts'

const DASHBOARD = 'config/grafana/dashboard.json'
const ALERTS = 'config/prometheus/alerts.yaml'

/** Returns the names of metrics, except those of Prometheus itself. */
const namesIn = (text: string) => [...new Set(text.match(/\b(?:hub2mqtt|process|nodejs)_[a-z0-9_]+\b/g))]

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: Record<'x' | 'y' | 'w' | 'h', number>
  /** The panels of the row, if it is collapsed. */
  readonly panels?: readonly Panel[]
}

function allPanels(): Panel[] {
  const dashboard: { readonly panels: readonly Panel[] } = JSON.parse(readFileSync(DASHBOARD, 'utf8'))
  return dashboard.panels.flatMap((panel) => [panel, ...(panel.panels ?? [])])
}

function parse(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

describe('a scrape', () => {
  let world: World
  let port: string
  beforeAll(async () => {
    port = String(await freePort())
    // A member of a fleet has all metrics of a single bridge, and those of the fleet.
    world = await World.start({ env: { HTTP_ENABLED: 'true', HTTP_PORT: port, FLEET_SHARD: '1/1' } })
  })
  afterAll(() => world[Symbol.asyncDispose]())
  const scrape = () => fetch(`http://127.0.0.1:${port}/metrics`)
  /** Resolves to a map from each sample, with its labels, to its value. */
  const samples = async () => parse(await (await scrape()).text())
  const crash = async () => {
    const { app } = world
    world.hub.crash(app)
    await until('the crash', () => world.events(app).some(({ event_type }) => event_type === 'crashed'))
    return app
  }

  it('is OpenMetrics text, each family once, with its help and type, with the required end', async () => {
    const response = await scrape()
    expect(response.headers.get('content-type')).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
    const text = await response.text()
    expect(text.endsWith('# EOF\n')).toBe(true)
    const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
    expect(new Set(types.map(([, name]) => name)).size).toBe(types.length)
    for (const [, name, type] of types) {
      expect(text).toContain(`# HELP ${name} `)
      if (type === 'counter') expect(text).not.toMatch(new RegExp(`^${name}[ {]`, 'm'))
    }
  })

  it('includes the processor time before the first scrape', async () => {
    const { user, system } = process.cpuUsage()
    const text = (await new Metrics().print()).text
    const after = process.cpuUsage()
    const found = parse(text)
    const bounds = [
      ['process_cpu_user_seconds_total', user, after.user],
      ['process_cpu_system_seconds_total', system, after.system],
      ['process_cpu_seconds_total', user + system, after.user + after.system],
    ] as const
    for (const [name, least, most] of bounds) {
      expect(found.get(name), name).toBeGreaterThanOrEqual(least / 1e6 - 1e-6)
      expect(found.get(name), name).toBeLessThanOrEqual(most / 1e6 + 1e-6)
    }
  })

  it('has the families that no dashboard and no alert uses, and the labels of the others', async () => {
    await world.request(`home/app/${world.app}/cmd/restart`)
    const found = [...(await samples()).keys()]
    for (const name of [
      'build_info{version="0.0.0-test",node="',
      'contested',
      'active',
      'problems',
      'hub_requests_total{hub="home",operation="getApps",outcome="ok"}',
      'hub_request_duration_seconds_bucket{le="0.05",hub="home",operation="getApps"}',
      'hub_up{hub="home"}',
      'apps{hub="home",state="running"}',
      'events_total{hub="home",type="crashed"}',
      'commands_total{command="restart",outcome="ok"}',
      'command_duration_seconds_count{command="restart"}',
    ]) {
      expect(found.filter((key) => key.startsWith(`hub2mqtt_${name}`)).length, name).toBeGreaterThan(0)
    }
  })

  it('counts calls, events, crashes and commands as they happen', async () => {
    const before = await samples()
    const app = await crash()
    await world.request(`home/app/${app}/cmd/disable`)
    for (const name of ['a', 'b']) await world.request(`home/cmd/${name}`)
    await world.request('home/cmd/refresh')
    await world.request(`home/app/${app}/cmd/enabled`, 'nonsense')
    await until('its event', () => world.events(app).some(({ event_type }) => event_type === 'command_failed'))
    const after = await samples()
    const grew = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0)
    expect(grew('hub2mqtt_events_total{hub="home",type="crashed"}')).toBe(1)
    expect(grew('hub2mqtt_events_total{hub="home",type="command_failed"}')).toBe(1)
    expect(after.get('hub2mqtt_events_total{hub="home",type="gave_up"}')).toBe(0)
    expect(grew(`hub2mqtt_app_crashes_total{hub="home",app="${app}"}`)).toBe(1)
    expect(grew('hub2mqtt_commands_total{command="disable",outcome="ok"}')).toBe(1)
    expect(grew('hub2mqtt_commands_total{command="unknown",outcome="unknown_command"}')).toBe(2)
    expect(grew('hub2mqtt_hub_requests_total{hub="home",operation="disableApp",outcome="ok"}')).toBe(1)
    expect(grew('hub2mqtt_hub_requests_total{hub="home",operation="getApps",outcome="ok"}')).toBeGreaterThanOrEqual(1)
    expect(grew('hub2mqtt_mqtt_publishes_total')).toBeGreaterThan(0)
    expect(grew('hub2mqtt_mqtt_published_bytes_total')).toBeGreaterThan(0)
  })

  it.each([DASHBOARD, ALERTS])('has all metrics of %s', async (path) => {
    await crash()
    await world.request('home/cmd/refresh')
    const scraped = await (await scrape()).text()
    const names = namesIn(readFileSync(path, 'utf8'))
    expect(names.length).toBeGreaterThan(2)
    for (const name of names) expect(scraped, name).toMatch(new RegExp(`^${name}[ {]`, 'm'))
  })

  it('of a fleet has the metrics of the row for fleets in the dashboard, and no others', async () => {
    const scraped = await (await scrape()).text()
    const row = allPanels().find(({ type, title }) => type === 'row' && title === 'Fleet')
    const told = namesIn(scraped).filter((name) => name.startsWith('hub2mqtt_fleet_'))
    expect(told.length).toBeGreaterThanOrEqual(5)
    expect(namesIn(JSON.stringify(row)).sort()).toEqual(told.sort())
  })

  it('shows that the hub is down, how old its list is, and why calls fail', async () => {
    world.hub.behave('answer-status', { status: 500 })
    await until('offline', () => world.observer.last('hub2mqtt/home/state') === 'offline')
    const found = await samples()
    expect(found.get('hub2mqtt_hub_up{hub="home"}')).toBe(0)
    expect(found.get('hub2mqtt_ready')).toBe(0)
    expect(found.get('hub2mqtt_hub_last_read_timestamp_seconds{hub="home"}')).toBeLessThan(Date.now() / 1000)
    expect(found.get('hub2mqtt_hub_requests_total{hub="home",operation="getApps",outcome="failed"}')).toBeGreaterThan(0)
  })
})

it('the panels of the dashboard have unique numbers and do not overlap', () => {
  const panels = allPanels()
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
  )
  expect(new Set(cells).size).toBe(cells.length)
})

describe('a histogram', () => {
  it('counts in each bucket the calls that took no longer than its bound', async () => {
    const metrics = new Metrics()
    for (const ms of [1, 5, 5.1, 1000, 40_000]) metrics.called('home', { operation: 'getApps', outcome: 'ok', ms })
    const { text } = await metrics.print()
    expect(text).toContain('# TYPE hub2mqtt_hub_request_duration_seconds histogram')
    const found = parse(text)
    const value = (suffix: string, le = '') =>
      found.get(`hub2mqtt_hub_request_duration_seconds_${suffix}{${le}hub="home",operation="getApps"}`)
    const bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, '+Inf']
    expect(bounds.map((bound) => value('bucket', `le="${bound}",`))).toEqual([2, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 5])
    expect(value('count')).toBe(5)
    expect(value('sum')).toBeCloseTo(41.0111)
  })

  it('of commands has buckets from 2.5 ms to 10 s', async () => {
    const metrics = new Metrics()
    metrics.answered('restart', 'hub_failed', 2.5)
    const found = parse((await metrics.print()).text)
    const bounds = [...found.keys()].flatMap((key) => key.match(/^hub2mqtt_command_duration.+le="([^"]+)"/)?.[1] ?? [])
    expect(bounds).toEqual('0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 +Inf'.split(' '))
    expect(found.get('hub2mqtt_commands_total{command="restart",outcome="hub_failed"}')).toBe(1)
    expect(found.get('hub2mqtt_command_duration_seconds_bucket{le="0.0025",command="restart"}')).toBe(1)
  })
})

describe('label sets stay bounded', () => {
  it('names at most 200 crashing apps of a hub and counts the others together', async () => {
    const metrics = new Metrics()
    metrics.showHubs(new Set(['home']))
    for (let app = 0; app < 1000; app++) {
      metrics.event('home', { event_type: 'crashed', app: `app-${app}`, changed: [], at: '' })
      metrics.event('home', { event_type: 'crashed', app: 'app-7', changed: [], at: '' })
    }
    const found = parse((await metrics.print()).text)
    const crashes = [...found.keys()].filter((key) => key.startsWith('hub2mqtt_app_crashes_total'))
    expect(crashes).toHaveLength(201)
    expect(found.get('hub2mqtt_app_crashes_total{hub="home",app="app-7"}')).toBe(1001)
    expect(found.get(`hub2mqtt_app_crashes_total{hub="home",app="${OTHER_APPS}"}`)).toBe(800)
    expect(found.get('hub2mqtt_events_total{hub="home",type="crashed"}')).toBe(2000)
  })

  it('prints events of open hubs only, initially zero, and continues to count when a hub is opened again', async () => {
    const metrics = new Metrics()
    const open = new Set(['home'])
    metrics.showHubs(open)
    const value = async () =>
      parse((await metrics.print()).text).get('hub2mqtt_events_total{hub="home",type="started"}')
    metrics.follow('home', { onEvent: () => undefined, figures: { health: undefined } })
    expect(await value()).toBe(0)
    metrics.event('home', { event_type: 'started', app: 'app', changed: [], at: '' })
    expect(await value()).toBe(1)
    open.delete('home')
    expect(await value()).toBeUndefined()
    open.add('home')
    metrics.follow('home', { onEvent: () => undefined, figures: { health: undefined } })
    expect(await value()).toBe(1)
  })
})

const hasPromtool = hasProgram('promtool', ['--version'], 'the tests of the alerts', 'apt-get install prometheus')

describe.runIf(hasPromtool)('the alerts, checked by promtool,', () => {
  const promtool = (...args: string[]) => spawnSync('promtool', args, { encoding: 'utf8' })

  it('are well formed', () => {
    expect(promtool('check', 'rules', ALERTS).status).toBe(0)
    expect(promtool('check', 'config', 'config/prometheus/prometheus.yaml').status).toBe(0)
  })

  it('fire when they should, and not before', () => {
    const { status, stdout, stderr } = promtool('test', 'rules', 'test/observability/metrics/alerts.promtool.yaml')
    expect(status, stdout + stderr).toBe(0)
  })
})
