import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
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

describe('the dashboard and the alerts', () => {
  let scraped: string
  beforeAll(async () => {
    const port = await freePort()
    // A member of a fleet has all metrics of a single bridge, and those of the fleet.
    const env = { HTTP_ENABLED: 'true', HTTP_PORT: String(port), FLEET_SHARD: '1/1' }
    await using world = await World.start({ env })
    const { app } = world
    world.hub.crash(app)
    await world.request('home/cmd/refresh')
    await until('the crash', () => world.events(app).length > 0)
    scraped = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  })

  it.each([DASHBOARD, ALERTS])('use existing metrics only: %s', (path) => {
    const names = namesIn(readFileSync(path, 'utf8'))
    expect(names.length).toBeGreaterThan(2)
    for (const name of names) expect(scraped, name).toMatch(new RegExp(`^${name}[ {]`, 'm'))
  })

  it('have a row with all metrics of a fleet', () => {
    const row = allPanels().find(({ type, title }) => type === 'row' && title === 'Fleet')
    const told = namesIn(scraped).filter((name) => name.startsWith('hub2mqtt_fleet_'))
    expect(told.length).toBeGreaterThanOrEqual(5)
    expect(namesIn(JSON.stringify(row)).sort()).toEqual(told.sort())
  })

  it('have panels with unique numbers that do not overlap', () => {
    const panels = allPanels()
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
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
