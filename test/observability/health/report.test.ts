import { describe, expect, it, test } from 'vitest'
import { Pulse } from '../../../src/hub/pulse.ts'
import type { LinkStatus } from '../../../src/mqtt/types.ts'
import { type HealthFacts, type HubHealth, healthReport, recentGrowth } from '../../../src/observability/health.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const connected: LinkStatus = {
  state: 'connected',
  protocol: '5',
  deniedFilters: [],
  deniedTopics: 0,
  probe: 'ok',
  queued: 0,
  unacknowledged: 0,
  reconnects: 0,
  publishes: 0,
  bytes: 0,
  dropped: 0,
}
const good: HubHealth = { online: true, reason: null, realtime: 'connected', read: true, task: 'alive' }
const down: HubHealth = { online: false, reason: 'unreachable', realtime: 'polling', read: false, task: 'alive' }

const BOTH = 'live and ready'

type Changes = Partial<Omit<HealthFacts, 'mqtt'>> & { readonly mqtt?: Partial<LinkStatus> }

const report = ({ mqtt, ...changes }: Changes = {}) =>
  healthReport({
    version: '1.2.3',
    startedAt: '2026-01-01T00:00:00.000Z',
    losing: false,
    contested: false,
    yields: false,
    role: 'active',
    mayBeIdle: false,
    mayAct: true,
    hubs: { home: good },
    failedSettings: 0,
    ...changes,
    mqtt: { ...connected, ...mqtt },
  })

describe('the health report', () => {
  it('is live and ready, and has no problems, if everything works', () => {
    expect(report()).toEqual({
      live: true,
      ready: true,
      problems: [],
      version: '1.2.3',
      started_at: '2026-01-01T00:00:00.000Z',
      mqtt: { state: 'connected', protocol: '5', reason: null, probe: 'ok' },
      hubs: { home: good },
    })
  })

  const LOST = 'events or answers were lost in the last ten minutes because they could not be sent'
  const UNREAD = 'published messages cannot be read back: the ACL of the MQTT broker is wrong'
  const UNSET = 'settings whose published values differ from those of the hubs (see the log): 2'
  const NO_LEASE = 'this member of the fleet has no lease, so it serves no hubs: check whether it reaches NATS'
  const TWO = 'another hub2mqtt uses the same base topic'
  const denied = { deniedFilters: ['hub2mqtt/+/cmd/#'] }
  const refused = { state: 'waiting', protocol: null, reason: 'unauthorized' } as const
  const unread: HubHealth = { ...good, reason: 'forbidden', read: false }
  const stuck: HubHealth = { ...good, task: 'stuck' }

  it.each<[string, Changes, is: string, ...problems: string[]]>([
    ['a hub that is down', { hubs: { home: down } }, 'live', 'hub home is offline: unreachable'],
    ['one hub of two that is down', { hubs: { home: good, attic: down } }, BOTH, 'hub attic is offline: unreachable'],
    ['no hub', { hubs: {} }, 'live', 'no hub is configured'],
    ['a member of a fleet without a hub', { hubs: {}, mayBeIdle: true }, BOTH],
    ['a member of a fleet without a lease', { hubs: {}, mayBeIdle: true, mayAct: false }, 'live', NO_LEASE],
    [
      'a hub whose apps may not be read',
      { hubs: { home: unread } },
      'live',
      'hub home: its apps cannot be read: forbidden',
    ],
    ['a broker that refuses the login', { mqtt: refused }, 'live', 'the MQTT broker is not connected: unauthorized'],
    ['an ACL that hides the published topics', { mqtt: { probe: 'denied' } }, BOTH, UNREAD],
    [
      'an ACL that blocks commands',
      { mqtt: denied },
      BOTH,
      'the MQTT broker refuses the subscription to hub2mqtt/+/cmd/#',
    ],
    [
      'topics that cannot be published',
      { mqtt: { deniedTopics: 2 } },
      BOTH,
      'retained topics that are not published (see the log): 2',
    ],
    ['settings that cannot be published', { failedSettings: 2 }, BOTH, UNSET],
    ['messages that were lost', { losing: true }, BOTH, LOST],
    ['a second bridge', { contested: true }, BOTH, TWO],
    [
      'devices of another bridge',
      { yields: true },
      BOTH,
      'another hub2mqtt publishes the same devices to Home Assistant: this one leaves them to it (see the log)',
    ],
    [
      'an older bridge that keeps this one on standby',
      { contested: true, role: 'standby' },
      BOTH,
      `${TWO} and started first: this one stands by`,
    ],
    ['a task that is stuck', { hubs: { home: stuck } }, 'ready', 'hub home: its task is stuck'],
  ])('reports %s', (_, facts, is, ...problems) => {
    expect(report(facts)).toMatchObject({ live: is !== 'ready', ready: is !== 'live', problems })
  })
})

test('each loss is reported for ten minutes', async () => {
  const clock = new FakeClock()
  const grew = recentGrowth(clock)
  expect(grew(0)).toBe(false)
  expect(grew(3)).toBe(true)
  await clock.advance(9 * 60_000)
  expect(grew(3)).toBe(true)
  await clock.advance(60_000)
  expect(grew(3)).toBe(false)
  expect(grew(4)).toBe(true)
})

describe('a pulse', () => {
  const intervals = { poll_interval: 60_000, poll_interval_fallback: 10_000, timeout: 10_000 }

  it('reports a task as stuck only if no pause and no timeout explain its silence', async () => {
    const clock = new FakeClock()
    const pulse = new Pulse(intervals, clock)
    await clock.advance(7 * 60_000)
    expect(pulse.stuck).toBe(false)
    await clock.advance(60_000)
    expect(pulse.stuck).toBe(true)
    pulse.called({ operation: 'getApps', outcome: 'unreachable' })
    expect(pulse.stuck).toBe(false)
  })

  it('remembers when the list was last read successfully, in wall time', async () => {
    const clock = new FakeClock(1_000_000)
    const pulse = new Pulse(intervals, clock)
    expect(pulse.readAt).toBeUndefined()
    pulse.called({ operation: 'getApps', outcome: 'ok' })
    await clock.advance(5000)
    pulse.called({ operation: 'getApps', outcome: 'failed' })
    pulse.called({ operation: 'ping', outcome: 'ok' })
    expect(pulse.readAt).toBe(1_000_000)
  })
})
