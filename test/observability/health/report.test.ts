import { describe, expect, it, test } from 'vitest'
import type { Role } from '../../../src/contract/schemas.ts'
import { Pulse } from '../../../src/hub/pulse.ts'
import type { LinkStatus } from '../../../src/mqtt/types.ts'
import { Recent } from '../../../src/observability/health.ts'
import { type HealthFacts, type HubHealth, healthReport } from '../../../src/observability/report.ts'
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

interface Changes {
  readonly mqtt?: Partial<LinkStatus>
  readonly losing?: boolean
  readonly contested?: boolean
  readonly role?: Role
  readonly mayBeIdle?: boolean
  readonly hubs?: Record<string, HubHealth>
  readonly failedSettings?: number
}

function report(facts: Changes = {}) {
  const {
    mqtt = {},
    losing = false,
    contested = false,
    role = 'active',
    mayBeIdle = false,
    hubs = { home: good },
    failedSettings = 0,
  } = facts
  const full: HealthFacts = {
    version: '1.2.3',
    startedAt: '2026-01-01T00:00:00.000Z',
    mqtt: { ...connected, ...mqtt },
    losing,
    contested,
    role,
    mayBeIdle,
    hubs: new Map(Object.entries(hubs)),
    failedSettings,
  }
  return healthReport(full)
}

describe('the health report', () => {
  it('is live and ready, and has no problem to tell, when all is well', () => {
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

  it.each([
    [
      'a hub that is down',
      { hubs: { home: down } },
      { live: true, ready: false, problems: ['hub home is offline: unreachable'] },
    ],
    [
      'one hub of two that is down',
      { hubs: { home: good, attic: down } },
      { live: true, ready: true, problems: ['hub attic is offline: unreachable'] },
    ],
    ['no hub', { hubs: {} }, { live: true, ready: false, problems: ['no hub is configured'] }],
    ['a member of a fleet without a hub', { hubs: {}, mayBeIdle: true }, { live: true, ready: true, problems: [] }],
    [
      'a hub whose apps may not be read',
      { hubs: { home: { ...good, reason: 'forbidden', read: false } } },
      { live: true, ready: false, problems: ['hub home: its apps cannot be read: forbidden'] },
    ],
    [
      'a broker that refuses the login',
      { mqtt: { state: 'waiting', protocol: null, reason: 'unauthorized' } },
      { live: true, ready: false, problems: ['the MQTT broker is not connected: unauthorized'] },
    ],
    [
      'an ACL that hides what is published',
      { mqtt: { probe: 'denied' } },
      {
        live: true,
        ready: true,
        problems: ['what is published cannot be read back: the ACL of the MQTT broker is wrong'],
      },
    ],
    [
      'an ACL that keeps commands away',
      { mqtt: { deniedFilters: ['hub2mqtt/+/cmd/#'] } },
      { live: true, ready: true, problems: ['the MQTT broker refuses the subscription to hub2mqtt/+/cmd/#'] },
    ],
    [
      'topics that cannot be published',
      { mqtt: { deniedTopics: 2 } },
      { live: true, ready: true, problems: ['retained topics that are not published, as the log says: 2'] },
    ],
    [
      'settings that cannot be published',
      { failedSettings: 2 },
      {
        live: true,
        ready: true,
        problems: ['settings that are not published as their hubs have them, as the log says: 2'],
      },
    ],
    [
      'messages that were lost',
      { losing: true },
      {
        live: true,
        ready: true,
        problems: ['events or answers were lost in the last ten minutes, as they could not be sent'],
      },
    ],
    [
      'a second bridge',
      { contested: true },
      { live: true, ready: true, problems: ['another hub2mqtt uses the same base topic'] },
    ],
    [
      'an elder bridge that keeps this one from its work',
      { contested: true, role: 'standby' },
      {
        live: true,
        ready: true,
        problems: ['another hub2mqtt uses the same base topic and started first: this one stands by'],
      },
    ],
    [
      'a task that is stuck',
      { hubs: { home: { ...good, task: 'stuck' } } },
      { live: false, ready: true, problems: ['hub home: its task is stuck'] },
    ],
  ] as const)('tells of %s', (_, facts, expected) => expect(report(facts)).toMatchObject(expected))
})

test('a loss is told of for ten minutes, and the next one anew', async () => {
  const clock = new FakeClock()
  const lost = new Recent(clock)
  expect(lost.grew(0)).toBe(false)
  expect(lost.grew(3)).toBe(true)
  await clock.advance(9 * 60_000)
  expect(lost.grew(3)).toBe(true)
  await clock.advance(60_000)
  expect(lost.grew(3)).toBe(false)
  expect(lost.grew(4)).toBe(true)
})

describe('a pulse', () => {
  const intervals = { poll_interval: 60_000, poll_interval_fallback: 10_000, timeout: 10_000 }

  it('calls a task stuck only when no pause and no time limit explain its silence', async () => {
    const clock = new FakeClock()
    const pulse = new Pulse(intervals, clock)
    await clock.advance(7 * 60_000)
    expect(pulse.stuck).toBe(false)
    await clock.advance(60_000)
    expect(pulse.stuck).toBe(true)
    pulse.called({ operation: 'getApps', outcome: 'unreachable' })
    expect(pulse.stuck).toBe(false)
  })

  it('remembers when the list was last read well, in wall time', async () => {
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
