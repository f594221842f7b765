import fc from 'fast-check'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { CRASH, type Crash, fitted, MAX_CRASH_BYTES, stackHead, together } from '../../src/contract/crash.ts'
import { reportOf } from '../../src/contract/crash-report.ts'
import { anyText } from '../support/any-text.ts'
import { runs } from '../support/runs.ts'

const AT = '2026-11-24T12:00:00.000Z'
const ago = (minutes: number) => new Date(Date.parse(AT) - minutes * 60_000).toISOString()
const happened = (what: Crash['before'][number]['what'], minutes: number, more = {}): Crash['before'][number] => ({
  at: ago(minutes),
  what,
  app: null,
  from: null,
  to: null,
  by: null,
  ...more,
})

const CRASHED: Crash = {
  at: AT,
  reason: 'exception',
  message:
    "TypeError: Cannot read properties of undefined (reading 'lamp')\n    at Lamp.onInit (/app/drivers/lamp.js:12:5)",
  stack_head: null,
  version: '6.1.2',
  firmware: '13.5.0',
  uptime_seconds: 360,
  app_uptime_seconds: 90_000,
  exit_code: 1,
  exit_signal: 'SIGKILL',
  samples: [
    [120, 0.4, 30 * 2 ** 20],
    [60, null, 60 * 2 ** 20],
  ],
  hub: {
    memory_total_bytes: 2 ** 31,
    memory_free_bytes: 2 ** 27,
    load_1m: 1.5,
    load_5m: 1,
    load_15m: 1,
    cpus: 4,
    temperature_celsius: 61,
    storage_total_bytes: null,
    storage_free_bytes: null,
    apps_memory_bytes: null,
    undervoltage: true,
    throttled: null,
    uptime_seconds: 360,
    booted_at: null,
    last_backup_at: null,
    firmware_update: null,
  },
  before: [
    happened('crashed', 1, { app: 'com.other' }),
    happened('command', 2, { app: 'com.athom.hue', to: 'restart', by: 'guard' }),
    happened('firmware_updated', 6, { from: '13.4.0', to: '13.5.0' }),
    happened('updated', 600, { app: 'com.athom.hue', from: '6.1.1', to: '6.1.2' }),
  ],
  others_crashed: ['com.other', 'com.third'],
  guard: { state: 'waiting', restarts: 3, next_restart_at: AT },
}

describe('the report for the developer', () => {
  test('states the cause, the place, the usage, and what happened before', () => {
    const report = reportOf('com.athom.hue', { ...CRASHED, stack_head: stackHead(CRASHED.message) })
    for (const part of [
      '# Crash of com.athom.hue 6.1.2',
      'reason: `exception`',
      '> TypeError Cannot read properties of undefined reading …',
      'at drivers/lamp.js:12:5 in Lamp.onInit',
      '3 apps crashed within 1 minute, 5 minutes after firmware 13.5.0 came.',
      '| Firmware of the hub | 13.5.0 |',
      '| The app was up for | 1 d 1 h |',
      '| Exit signal | SIGKILL |',
      '| Free memory of the hub | 128.0 MiB of 2048.0 MiB |',
      '| Under-voltage | yes |',
      '| 2 min | 0.4 % | 30.0 MiB |',
      '- 1 min before: another app crashed',
      '- 2 min before: command `restart` for this app by the guardian',
      '- 10 h before: this app was updated from 6.1.1 to 6.1.2',
    ])
      expect(report).toContain(part)
  })

  test('states a minimum number of crashed apps if the evidence has room for no more', () => {
    const others_crashed = Array.from({ length: 50 }, (_, i) => `com.app${i}`)
    expect(reportOf('com.athom.hue', { ...CRASHED, before: [], others_crashed })).toContain(
      '\n\nAt least 51 apps crashed within a minute.',
    )
  })

  /** Private data of people, including their networks and settings, that a report must not contain. */
  const PRIVATE = [
    'Erika Mustermann',
    'erika.mustermann@example.org',
    '192.168.1.77',
    'fe80::1ff:fe23:4567:890a',
    '00:11:22:33:44:55',
    'https://192-168-1-77.homey.homeylocal.com/x?t=abcdefgh',
    'Hauptstraße 12, 12345 Musterstadt',
    '8f14e45fceea167a5a36dedd4bea2543',
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln',
    '+49 171 1234567',
    'geheim4711',
    '/home/erika/app/erika.txt',
  ]

  test('has no ids of apps, addresses or keys from the locations in a stack', () => {
    const frames: readonly (readonly [string, string])[] = [
      ['at Client.send (/app/lib/apps/com.fake.app1/client.js:10:3)', 'at lib/apps/…/client.js:10:3 in Client.send'],
      ['at call (/app/lib/com.fake.app2.js:3:3)', 'at lib/…:3:3 in call'],
      ['at com.fake.app1.send (/app/api.js:4:4)', 'at api.js:4:4 in …'],
      ['at x (/app/devices/192.168.1.20.js:1:1)', 'at devices/…:1:1 in x'],
      ['at x (/app/keys/sk_live_ABCDEF1234567890.js:1:1)', 'at keys/…:1:1 in x'],
      ['at com.fake.app1 (/app/node_modules/com.fake.app1/lib/x.js:1:1)', 'at node_modules/…/lib/x.js:1:1 in …'],
      [
        'at Socket.emit (/app/node_modules/socket.io-client/lib/socket.js:1:1)',
        'at node_modules/socket.io-client/lib/socket.js:1:1 in Socket.emit',
      ],
    ]
    const stack_head = frames.map(([said]) => said).join('\n')
    expect(framesOf(stack_head)).toEqual(frames.map(([, shown]) => shown))
  })

  const framesOf = (stack_head: string) =>
    reportOf('com.athom.hue', { ...CRASHED, stack_head })
      .split('```')[1]
      ?.trim()
      .split('\n')

  test.each([
    ['at x (/app/app.js:1:2)', 'at app.js:1:2 in x'],
    ['at async file:///app/drivers/lamp/device.mjs:1:2', 'at drivers/lamp/device.mjs:1:2'],
    ['at x (/com.athom.hue/app.js:1:2)', 'at app.js:1:2 in x'],
    ['at x (/home/jane (old)/com.athom.hue/lib/a.js:1:2)', 'at lib/a.js:1:2 in x'],
    ['at x (/home/jane/node_modules/com.athom.hue/lib/a.js:1:2)', 'at lib/a.js:1:2 in x'],
    ['at x (/data/com.athom.hue/node_modules/ws/lib/a.js:1:2)', 'at node_modules/ws/lib/a.js:1:2 in x'],
    ['at x (/app.js:3:9)', 'at app.js:3:9 in x'],
    ['at x (/drivers/lamp/device.js:1:2)', 'at drivers/lamp/device.js:1:2 in x'],
    ['at x (/node_modules/ws/lib/a.js:1:2)', 'at node_modules/ws/lib/a.js:1:2 in x'],
    ['at x (/src/lamps/lamp.js:1:2)', 'at src/lamps/lamp.js:1:2 in x'],
    ['at x (/widgets/w/api.js:1:2)', 'at widgets/w/api.js:1:2 in x'],
    ['at JSON.parse (<anonymous>)', 'at <anonymous> in JSON.parse'],
    ['at Array.forEach (<anonymous>)', 'at <anonymous> in Array.forEach'],
    ['at new Promise (<anonymous>)', 'at <anonymous> in Promise'],
    ['at x (lib/a.js:1:2)', 'at a.js:1:2 in x'],
    ['at emit (events.js:1:2)', 'at events.js:1:2 in emit'],
    ['at emit (node:events:1:2)', 'at …:1:2 in emit'],
    // Node.js prints the properties of the error after the last frame.
    ['at x (/app/app.js:1:2) {', 'at app.js:1:2 in x'],
    ['at file:///app/app.js:1:2 {', 'at app.js:1:2'],
    ['File "/app/lib/a.py", line 3, in run', 'File lib/a.py:3 in run'],
    ['File "a.py", line 3, in run', 'File a.py:3 in run'],
  ])('keeps the place of %s, which belongs to the app or to Node.js', (said, shown) => {
    expect(framesOf(said)).toEqual([shown])
  })

  const NOTHING = [
    ['at /home/jane (old)/jane.js:1:2', 'at …'],
    ['at async file:///Users/jane/jane.js:1:2', 'at …'],
    ['File "/home/jane/jane.py", line 3, in jane', 'File … in …'],
  ]
  const NO_PLACE = [
    'at janeDoe (<anonymous>)',
    'at Object.janeDoe (<anonymous>)',
    'at Array.forEach (/home/jane/jane.js:1:1)',
    'at janeDoe (/home/jane/jane-doe-house.js:1:1)',
    'at janeDoe (/home/jane/app/index.js:1:2)',
    'at janeDoe (/home/jane (old)/jane.js:1:2)',
    'at janeDoe (/home/jane/node_modules/ws/jane.js:1:2)',
    'at janeDoe (/home/jane/com.athom.hue.js:1:2)',
    'at janeDoe (/app/../home/jane.js:1:2)',
    'at janeDoe (../jane.js:1:2)',
    'at janeDoe (~/jane.js:1:2)',
    'at janeDoe (file:///Users/jane/secret-name.js:2:2)',
    'at janeDoe (file://jane/app/secret-name.js:2:2)',
    'at janeDoe (https://jane.example.org/private.js:3:3)',
    'at janeDoe (https://jane.example.org/com.athom.hue/private.js:3:3)',
    'at janeDoe (C:\\Users\\jane\\private.js:3:3)',
    'at janeDoe (/org.other.app/app.js:1:1)',
    'at janeDoe (<anonymous>)',
    'at janeDoe (jane:1:2)',
  ].map((said) => [said, 'at … in …'])
  test.each([...NO_PLACE, ...NOTHING])('has nothing of %s, which is not in the code of the app', (said, shown) => {
    expect(framesOf(said ?? '')).toEqual([shown])
  })

  test.each(PRIVATE)('has nothing of %s, wherever the hub reports it', (secret) => {
    const texts = [
      `Error: ${secret} is not there\n    at ${secret} (${secret}:1:2)\n    at f (/home/${secret}/index.js:1:2)`,
      `${secret}\n  File "/${secret}/main.py", line 3, in ${secret}\n  File "${secret}", line ${secret}, in x`,
      `    at ${secret}`,
    ]
    for (const message of texts) {
      const report = reportOf(secret, {
        ...CRASHED,
        message,
        stack_head: stackHead(message) ?? message,
        version: secret,
        firmware: secret,
        exit_signal: secret,
        before: [
          ...(['crashed', 'updated', 'installed', 'removed', 'command', 'setting', 'firmware_updated'] as const).map(
            (what) => happened(what, 1, { app: secret, from: secret, to: secret, by: secret }),
          ),
          happened('updated', 2, { app: secret, from: secret, to: secret }),
        ],
        others_crashed: [secret],
        hub: CRASHED.hub && { ...CRASHED.hub, firmware_update: secret },
      })
      const words = secret.split(/[^\p{L}\p{N}]+/u).filter((word) => word.length > 3)
      for (const word of [secret, ...words]) expect(report.toLowerCase()).not.toContain(word.toLowerCase())
    }
  })
})

describe('the evidence', () => {
  test('fits 16 KiB whatever a hub reports, cuts no text, and drops the oldest first', () => {
    const text = (maxLength: number) => anyText({ maxLength })
    const id = text(256)
    const crashes = fc.record({
      message: text(500),
      before: fc.array(id, { maxLength: 100 }),
      others: fc.array(id, { maxLength: 50 }),
      samples: fc.integer({ min: 0, max: 120 }),
    })
    fc.assert(
      fc.property(crashes, ({ message, before, others, samples }) => {
        const crash: Crash = {
          ...CRASHED,
          message,
          stack_head: message,
          before: before.map((to, i) => happened('setting', i, { app: to, to })),
          others_crashed: others,
          samples: Array.from({ length: samples }, (_, i) => [(samples - i) * 180, 100.5, 123_456_789]),
        }
        const fit = fitted(crash)
        expect(Buffer.byteLength(JSON.stringify(fit))).toBeLessThanOrEqual(MAX_CRASH_BYTES)
        expect(fit.message).toBe(message)
        expect(fit.before).toEqual(crash.before.slice(0, fit.before.length))
        expect(fit.samples).toEqual(crash.samples.slice(crash.samples.length - fit.samples.length))
        if (fit.before.length > 0) expect(fit.samples).toEqual(crash.samples)
        expect(v.is(CRASH, fit)).toBe(true)
      }),
      // Generating these texts takes most of the time.
      { numRuns: runs(30) },
    )
  })

  test('keeps its samples while there is anything else to drop', () => {
    const worst: Crash = {
      ...CRASHED,
      message: '\u0000'.repeat(1024),
      stack_head: '\u0000'.repeat(1024),
      before: Array(100).fill(happened('setting', 1, { to: 'x'.repeat(256) })),
      others_crashed: Array(50).fill('x'.repeat(256)),
      samples: Array.from({ length: 120 }, (_, i) => [(120 - i) * 180, 100.5, 123_456_789]),
    }
    const fit = fitted(worst)
    expect(Buffer.byteLength(JSON.stringify(fit))).toBeLessThanOrEqual(MAX_CRASH_BYTES)
    expect(fit).toMatchObject({ before: [], message: worst.message, stack_head: worst.stack_head })
    expect(fit.others_crashed.length).toBeLessThan(5)
    expect(fit.samples).toEqual(worst.samples)
  })
})

describe('crashes at about the same time', () => {
  const at = Date.parse(AT)
  const event = (what: Crash['before'][number]['what'], minutes: number, to: string | null = null) => ({
    what,
    to,
    at: at - minutes * 60_000,
  })

  test('are reported as one event, with the firmware update before it', () => {
    const crashes = [at, at - 30_000, at - 60_000, at - 120_000]
    expect(together(crashes, [event('firmware_updated', 8, '13.5.0')])).toBe(
      '4 apps crashed within 2 minutes, 6 minutes after firmware 13.5.0 came',
    )
  })

  test('are reported without events long before or after the first of them, and one crash is not reported', () => {
    expect(together([at, at - 1000], [event('firmware_updated', 90)])).toBe('2 apps crashed within a minute')
    expect(together([at, at - 120_000], [event('hub_restarted', 1)])).toBe('2 apps crashed within 2 minutes')
    expect(together([at, at], [event('hub_restarted', 3)])).toBe(
      '2 apps crashed within a minute, 3 minutes after the hub restarted',
    )
    expect(together([at], [event('hub_restarted', 1)])).toBeUndefined()
  })
})
