import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decodeDevices,
  decodeEntries,
  decodeFlows,
  decodeInfo,
  decodeLogs,
  decodeSpace,
  decodeTime,
  decodeUpdates,
} from '../../src/hub/decode-evidence.ts'
import { LIMIT_MS, longestIn } from '../fuzz/run.ts'

const HUE = 'com.athom.hue'
const NOTHING_KNOWN = {
  load: [null, null, null],
  cpus: null,
  memory: { total: null, free: null },
  temperatureCelsius: null,
  undervoltage: null,
  throttled: null,
  uptimeSeconds: null,
}

describe("the hub's machine", () => {
  test('is read from all fields that a hub may have', () => {
    const info = {
      loadavg: [1.234, 0.5, 0],
      cpus: [{}, {}, {}, {}],
      totalmem: 4e9,
      freemem: 1e9,
      uptime: 4711.6,
      videoCoreTemperature: 51.27,
      videoCoreUndervoltageNow: false,
      videoCoreUndervoltageEver: true,
      videoCoreThrottledNow: false,
    }
    expect(decodeInfo(info)).toEqual({
      load: [1.23, 0.5, 0],
      cpus: 4,
      memory: { total: 4e9, free: 1e9 },
      temperatureCelsius: 51.3,
      undervoltage: true,
      throttled: false,
      uptimeSeconds: 4712,
    })
    expect(decodeSpace({ total: 10, free: 4, types: {} })).toEqual({ total: 10, free: 4 })
  })

  test.each([null, 7, 'text', [], {}, { loadavg: 'x', cpus: -1, totalmem: '4', uptime: -5, videoCoreUndervoltage: 1 }])(
    'is unknown if the answer is %j',
    (answer) => {
      expect(decodeInfo(answer)).toEqual(NOTHING_KNOWN)
      expect(decodeSpace(answer)).toEqual({ total: null, free: null })
      expect(decodeUpdates(answer)).toBeNull()
      expect(decodeEntries(answer)).toEqual([])
    },
  )

  test('is read from any JSON without an error', () => {
    const property = fc.property(fc.jsonValue(), (value) => {
      for (const decode of [decodeInfo, decodeSpace, decodeTime, decodeUpdates, decodeEntries]) decode(value)
    })
    fc.assert(property)
  })

  test.each([
    ['2026-11-24T10:00:00+01:00', '2026-11-24T09:00:00.000Z'],
    [1_795_510_800, '2026-11-24T09:00:00.000Z'],
    [1_795_510_800_000, '2026-11-24T09:00:00.000Z'],
    [{ value: '2026-11-24T09:00:00Z' }, '2026-11-24T09:00:00.000Z'],
    ['never', null],
    [0, null],
    [true, null],
    [1e300, null],
  ])('has its last backup read from %j', (said, at) => {
    expect(decodeTime(said)).toBe(at)
  })

  test('has the version of an update, without the API key and of bounded length', () => {
    const clean = (text: string) => text.replaceAll('key', '***')
    expect(decodeUpdates([{ type: 'firmware' }, { version: '13.5.0' }])).toBe('13.5.0')
    expect(decodeUpdates({ a: { version: 'key-1' } }, {}, clean)).toBe('***-1')
    expect(decodeUpdates({ version: 'x'.repeat(1e5) })).toHaveLength(100)
  })
})

describe('devices and flows', () => {
  const tallied = async (decode: typeof decodeDevices, value: unknown) => [...(await decode(JSON.stringify(value)))]

  test('are counted by app, in a list and in an object, including unavailable and broken ones', async () => {
    const devices = [
      { id: 'a', driverId: `homey:app:${HUE}:bulb`, available: true },
      { id: 'b', driverUri: `homey:app:${HUE}`, driverId: 'bulb', available: false },
      { id: 'c', driverUri: 'homey:app:other', available: true },
      { id: 'd', driverUri: 'homey:manager:vdevice', available: false },
      'no device',
    ]
    const counts = [
      [HUE, { count: 2, bad: 1 }],
      ['other', { count: 1, bad: 0 }],
    ]
    expect(await tallied(decodeDevices, devices)).toEqual(counts)
    expect(await tallied(decodeDevices, { ...devices })).toEqual(counts)
  })

  test('have unknown counts if one does not state whether it is available', async () => {
    const devices = [{ driverId: `homey:app:${HUE}:x`, available: false }, { driverId: `homey:app:${HUE}:x` }]
    expect(await tallied(decodeDevices, devices)).toEqual([[HUE, { count: 2, bad: null }]])
  })

  test('are counted once for each app whose cards a flow has', async () => {
    const flows = {
      a: { broken: true, trigger: { uri: `homey:app:${HUE}` }, actions: [{ id: `homey:app:${HUE}:on` }, { id: 'x' }] },
      b: {
        broken: false,
        cards: { one: { ownerUri: 'homey:app:other', id: 'y' }, two: { id: `homey:app:${HUE}:on` } },
      },
      c: { broken: true, conditions: null, actions: 'nonsense' },
    }
    expect(await tallied(decodeFlows, flows)).toEqual([
      [HUE, { count: 2, bad: 1 }],
      ['other', { count: 1, bad: 0 }],
    ])
  })

  test.each(['', 'null', 'true', '{"a":{}', '{"a":{,}}', 'not JSON', '{"a":{"b":"', `[${'{},'.repeat(20_001)}{}]`])(
    'are not a list if the answer is %#',
    async (text) => {
      await expect(decodeDevices(text)).rejects.toMatchObject({ code: 'nonsense' })
    },
  )

  test('of at most 5,000 apps are kept', async () => {
    const devices = Array.from({ length: 6_000 }, (_, at) => ({ driverId: `homey:app:a${at}:x`, available: true }))
    expect(await tallied(decodeDevices, devices)).toHaveLength(5_000)
  })

  test.each([
    ['many records', `[${'{"driverId":"homey:app:a:b","available":true},'.repeat(19_999)}{}]`],
    ['deep records', `[${`${'['.repeat(60_000)}${']'.repeat(60_000)},`.repeat(50)}{}]`],
    ['records of many values', `[${`[${'0,'.repeat(250_000)}0],`.repeat(15)}{}]`],
    ['one long text', `["${'x'.repeat(8e6)}"]`],
    ['no end', '['.repeat(8e6)],
  ])('never block the event loop for 100 ms, whatever the hub sends: %s', async (_, text) => {
    expect(await longestIn([text], () => decodeFlows(text).catch(() => undefined))).toBeLessThan(LIMIT_MS)
  })
})

describe('insights', () => {
  test('are logs with an owner and an id', async () => {
    const logs = [{ id: 'cpu', uri: `homey:app:${HUE}` }, { id: 'x', ownerUri: 'o', uri: 'u' }, { id: 7 }, {}]
    expect(await decodeLogs(JSON.stringify(logs))).toEqual([
      { owner: `homey:app:${HUE}`, id: 'cpu' },
      { owner: 'o', id: 'x' },
    ])
  })

  test('are figures in the order of their times, in any form', () => {
    const values = [
      { t: '2026-11-24T09:01:00.000Z', v: 2 },
      { t: '2026-11-24T09:00:00.000Z', v: 1 },
      { t: 'never', v: 3 },
      { t: '2026-11-24T09:02:00.000Z', v: null },
    ]
    const read = [
      [1_795_510_800_000, 1],
      [1_795_510_860_000, 2],
    ]
    expect(decodeEntries({ values })).toEqual(read)
    expect(decodeEntries(values)).toEqual(read)
    expect(decodeEntries([[1_795_510_860, 2], { time: 1_795_510_800_000, value: 1 }])).toEqual(read)
  })
})
