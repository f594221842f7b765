import { describe, expect, it } from 'vitest'
import { differences, takeOver } from '../../../src/config/reload.ts'
import { load } from '../support.ts'

const config = (yaml: string) =>
  load({ yaml: `hubs: {home: {url: "http://10.0.0.1", api_key: the-key}}\n${yaml}` }).config
const hubs = (yaml: string) => load({ yaml: `hubs:\n${yaml}` }).config
const HOME = '  home: {url: "http://10.0.0.1", api_key: the-key}\n'

/** Returns the changes that take effect immediately (`live`), and those that need a restart (`later`). */
function split(now: ReturnType<typeof config>, next: ReturnType<typeof config>) {
  const taken = takeOver(now, next)
  return { live: differences(now, taken), later: differences(taken, next) }
}

describe('of a changed configuration', () => {
  it.each([
    'log: {level: debug}',
    'apps: {include: ["a*"], exclude: ["b"]}',
    'commands: {allow: ["*"], deny: [speak], read_only: true}',
    'settings: {publish: {a: {b: switch}}}',
  ])('%s takes effect immediately', (yaml) => {
    const { live, later } = split(config(''), config(yaml))
    expect(live.length).toBeGreaterThan(0)
    expect(later).toEqual([])
  })

  it.each([
    'log: {format: json}',
    'mqtt: {base_topic: other, client_id: x, keepalive: 10s, protocol: "5"}',
    'mqtt: {username: a, password: b}',
    'mqtt: {embedded: {port: 1884}}',
    'discovery: {prefix: other}',
    'http: {enabled: false, port: 1, host: "::"}',
  ])('%s takes effect at the next start', (yaml) => {
    const { live, later } = split(config(''), config(yaml))
    expect(live).toEqual([])
    expect(later.length).toBeGreaterThan(0)
  })

  it('new credentials for a broker take effect at the next connection, without a restart', () => {
    const url = 'mqtt: {url: "mqtt://broker"'
    expect(split(config(`${url}}`), config(`${url}, username: a, password: b}`))).toEqual({
      live: ['mqtt.username', 'mqtt.password'],
      later: [],
    })
  })

  it('credentials for another broker are not sent to the current one', () => {
    const now = config('mqtt: {url: "mqtt://one", username: a, password: b}')
    const taken = takeOver(now, config('mqtt: {url: "mqtt://two", username: c, password: d}'))
    expect(taken.mqtt).toEqual(now.mqtt)
  })

  it('hubs are added and removed immediately; a hub keeps its address until the next start, and therefore its key', () => {
    const attic = '  attic: {url: "http://10.0.0.2", api_key: other}\n'
    expect(split(hubs(HOME), hubs(HOME + attic))).toEqual({ live: ['hubs.attic'], later: [] })
    expect(split(hubs(HOME + attic), hubs(HOME))).toEqual({ live: ['hubs.attic'], later: [] })
    expect(split(hubs(HOME), hubs(HOME.replace('the-key', 'new-key')))).toEqual({
      live: ['hubs.home.api_key'],
      later: [],
    })
    const moved = HOME.replace('10.0.0.1', '10.0.0.9').replace('the-key', 'new-key')
    expect(split(hubs(HOME), hubs(moved))).toEqual({ live: [], later: ['hubs.home.url', 'hubs.home.api_key'] })
  })

  it('nothing is reported if nothing changed', () => {
    const yaml = 'settings: {publish: {a: {b: switch}}}\nlog: {level: debug}'
    expect(split(config(yaml), config(yaml))).toEqual({ live: [], later: [] })
  })
})
