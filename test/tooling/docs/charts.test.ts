import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { readBenchmarks, readReliability } from '../../../src/tooling/docs/charts/data.ts'
import { round } from '../../bench/stats.ts'

const text = (path: string) => readFileSync(path, 'utf8')
const PAGES = [
  { page: 'docs/internals/benchmarks.md', charts: ['latencies', 'growth'] },
  { page: 'docs/internals/reliability.md', charts: ['agreement'] },
]
const charts = PAGES.flatMap((one) => one.charts)
const svg = (chart: string) => text(`docs/images/${chart}.svg`)

describe('the charts', () => {
  it.each(PAGES)('stand on the page whose figures they show: $page', ({ page, charts: shown }) => {
    for (const chart of shown)
      expect(text(page)).toMatch(new RegExp(`^!\\[.+\\]\\(\\.\\./images/${chart}\\.svg\\)$`, 'm'))
  })

  it('show what the page says of each fault', () => {
    const page = text('docs/internals/reliability.md')
    const { kinds } = readReliability()
    const rows = page.split('\n').filter((line) => line.startsWith('| '))
    for (const { fault, agreeMs } of kinds) {
      if (agreeMs === null) continue
      const row = rows.find((line) => line.startsWith(`| ${fault} |`))
      const [p50, p95, max] = (row?.split('|').slice(-4) ?? []).map((cell) => Number.parseFloat(cell) * 1000)
      expect(row, fault).toBeDefined()
      // The page rounds: to 10 ms, and from 10 s on to 100 ms.
      for (const [told, known] of [
        [p50, agreeMs.p50] as const,
        [p95, agreeMs.p95] as const,
        [max, agreeMs.max] as const,
      ])
        expect(Math.abs((told ?? 0) - known), `${fault}: ${row}`).toBeLessThanOrEqual(known < 10_000 ? 5 : 50)
      expect(svg('agreement')).toContain(`>${fault}</text>`)
    }
  })

  it('show what the page says of growth', () => {
    const page = text('docs/internals/benchmarks.md')
    for (const { hubs, apps, startMs, rssMb, cpuUs } of readBenchmarks().grown) {
      const figures = [`${round(startMs)} ms`, `${round(rssMb)} MB`, `${round(cpuUs)} µs`]
      expect(page).toContain(`| ${hubs} | ${apps.toLocaleString('en')} | ${figures.join(' | ')} |`)
    }
  })

  it.each(charts)('can be read by who does not see them: %s has a title and a description', (chart) => {
    expect(svg(chart)).toMatch(/<title>.{10,}<\/title>\n<desc>.{10,}<\/desc>/)
  })

  it.each(charts.flatMap((chart) => [`${chart} in light`, `${chart} in dark`]))('can be read: %s', (which) => {
    const [chart = '', scheme] = which.split(' in ')
    const [light = '', dark = ''] = /<style>(.*)<\/style>/.exec(svg(chart))?.[1]?.split('@media') ?? []
    const rules = scheme === 'dark' ? dark : light
    const colours = new Map([...rules.matchAll(/\.(\w+)\{\w+:(#\w{6})\}/g)].map(([, name, colour]) => [name, colour]))
    const paper = colours.get('paper') ?? ''
    // What WCAG wants of text, and of shapes.
    for (const [name, least] of Object.entries({ ink: 4.5, quiet: 4.5, hub2mqtt: 3, bare: 3, plain: 3, line: 3 })) {
      expect(contrast(colours.get(name) ?? '', paper), `${name} on ${paper}`).toBeGreaterThanOrEqual(least)
    }
  })
})

/** As WCAG defines it, from 1 to 21. */
function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
