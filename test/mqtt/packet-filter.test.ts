import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PacketFilter, TOO_LARGE_STAND_IN } from '../../src/mqtt/packet-filter.ts'
import type { Protocol } from '../../src/mqtt/types.ts'

const MIB = 1024 * 1024

function packet(first: number, ...body: readonly (Buffer | readonly number[])[]): Buffer {
  const bytes = Buffer.concat(body.map((part) => Buffer.from(part)))
  const length: number[] = []
  for (let rest = bytes.length; ; rest >>= 7) {
    length.push((rest & 0x7f) | (rest < 0x80 ? 0 : 0x80))
    if (rest < 0x80) break
  }
  return Buffer.concat([Buffer.from([first, ...length]), bytes])
}

const topic = (name: string) => Buffer.concat([Buffer.from([name.length >> 8, name.length & 0xff]), Buffer.from(name)])
const puback = (reason: number) => packet(0x40, [0, 7, reason])

/** @param cuts the sizes of the pieces in which the bytes arrive, in turn */
function through(bytes: Buffer, cuts: readonly number[], protocol: Protocol = '5'): Buffer {
  const filter = new PacketFilter(protocol)
  const out: Buffer[] = []
  for (let at = 0, i = 0; at < bytes.length; i += 1) {
    const size = cuts[i % cuts.length] ?? 1
    out.push(filter.filter(Buffer.from(bytes.subarray(at, at + size))))
    at += size
  }
  return Buffer.concat(out)
}

const cuts = fc.array(fc.integer({ min: 2_000, max: 70_000 }), { minLength: 1, maxLength: 8 })
const small = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((body) => packet(0x30, [...body])),
  fc.constantFrom(packet(0xd0), packet(0x90, [0, 1, 0, 1]), puback(0), puback(0x87), packet(0x40, [0, 1])),
)

describe('data from a broker', () => {
  test('passes unchanged, however it is split', () => {
    fc.assert(
      fc.property(
        fc.array(small, { maxLength: 30 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
        (packets, cuts) => {
          const bytes = Buffer.concat(packets)
          expect(through(bytes, cuts).equals(bytes)).toBe(true)
        },
      ),
    )
  })

  test('has each PUBACK reason replaced that mqtt.js would treat as a protocol error', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (cuts) => {
        const bytes = Buffer.concat([puback(0x95), packet(0xd0), puback(0x10), puback(0xa2), puback(0x95)])
        const expected = [
          puback(TOO_LARGE_STAND_IN),
          packet(0xd0),
          puback(0x10),
          puback(0x80),
          puback(TOO_LARGE_STAND_IN),
        ]
        expect(through(bytes, cuts).equals(Buffer.concat(expected))).toBe(true)
      }),
    )
  })

  test.each([
    ['5', 0x32, [0, 9, 3, 0x26, 1, 2]],
    ['5', 0x31, [0]],
    ['3.1.1', 0x32, [0, 9]],
    ['3.1.1', 0x30, []],
  ] as const)('has a large message cut, with its topic and properties kept (MQTT %s, %i)', (protocol, first, rest) => {
    const large = packet(first, topic('b/x'), rest, Buffer.alloc(3 * MIB, 'x'))
    fc.assert(
      fc.property(small, cuts, (beside, cuts) => {
        const out = through(Buffer.concat([beside, large, beside]), cuts, protocol)
        const cut = packet(first, topic('b/x'), rest, Buffer.alloc(MIB / 4, 'x'))
        expect(out.equals(Buffer.concat([beside, cut, beside]))).toBe(true)
      }),
      { numRuns: 10 },
    )
  })

  test('has large properties removed, or all of them', () => {
    const none = packet(0x32, topic('b/x'), [0, 9], [0], Buffer.alloc(MIB / 4, 'p'))
    // Test two lengths of the properties: 2 MiB, and a length whose encoding is longer than four bytes.
    for (const length of [
      [0x80, 0x80, 0x80, 0x01],
      [0xff, 0xff, 0xff, 0xff, 0xff],
    ]) {
      const large = packet(0x32, topic('b/x'), [0, 9], length, Buffer.alloc(3 * MIB, 'p'))
      expect(through(large, [65_536]).equals(none)).toBe(true)
    }
  })

  test('passes unchanged from a malformed header on', () => {
    const bytes = Buffer.concat([puback(0), Buffer.from([0x30, 0xff, 0xff, 0xff, 0xff, 0xff]), puback(0x95)])
    expect(through(bytes, [3]).equals(bytes)).toBe(true)
  })
})
