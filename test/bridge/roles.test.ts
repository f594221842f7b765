import pino from 'pino'
import { describe, expect, test } from 'vitest'
import { Presence } from '../../src/bridge/presence.ts'
import { StartupBuffer } from '../../src/bridge/startup-buffer.ts'
import { decodeText, MAX_PAYLOAD_BYTES } from '../../src/contract/payload.ts'
import type { Message } from '../../src/mqtt/types.ts'
import { FakeClock } from '../support/fake-clock.ts'

const TOPIC = 'b/bridge/presence'
const EARLY = '2026-01-01T00:00:00.000Z'
const LATE = '2026-01-01T00:00:01.000Z'

/** Bridges that receive each other's presence messages, as over a broker. */
class Room {
  readonly clock = new FakeClock()
  readonly members: Presence[] = []
  readonly takenOver: string[] = []
  readonly said: string[] = []
  readonly lines: string[] = []
  /** Whether messages wait until `deliver` is called. */
  isSlow = false
  readonly #waiting: (() => void)[] = []

  join(instance: string, startedAt: string): Presence {
    const member = new Presence({
      topic: TOPIC,
      startedAt,
      instance,
      link: {
        send: (topic, text, { onAcknowledged }) => {
          const pass = () => {
            if (this.members.includes(member)) this.say(topic, text, member)
            onAcknowledged?.()
          }
          if (this.isSlow) this.#waiting.push(pass)
          else pass()
        },
      },
      onChange: () => {},
      hubs: new Map(),
      upkeep: { former: { add() {} } },
      onOtherActive: () => this.takenOver.push(instance),
      clock: this.clock,
      log: pino({}, { write: (line: string) => this.lines.push(line) }),
    })
    this.members.push(member)
    return member
  }

  deliver(): void {
    for (const pass of this.#waiting.splice(0)) pass()
  }

  leave(member: Presence): void {
    this.members.splice(this.members.indexOf(member), 1)
  }

  say(topic: string, text: string, from?: Presence, retain = false): void {
    this.said.push(text)
    const payload = Buffer.from(text)
    const message = { topic, payload, retain, dup: false, qos: 1, receivedAt: 0, connection: 1 } as const
    queueMicrotask(() => {
      for (const member of this.members) if (member !== from) member.receive(message)
    })
  }
}

/** Connects a bridge, and then a second one that finds it. */
function two() {
  const room = new Room()
  const [elder, younger] = [room.join('a', EARLY), room.join('b', LATE)]
  elder.connected(false)
  younger.connected(true)
  return { room, elder, younger }
}

test('a bridge without an answer is active: immediately, or after a second if another one seems to be online', async () => {
  const room = new Room()
  const { clock } = room
  const alone = room.join('a', EARLY)
  alone.connected(false)
  expect(alone.role).toBe('active')
  alone.connected(true)
  expect(alone.role).toBe('undecided')
  await clock.advance(999)
  expect(alone.role).toBe('undecided')
  await clock.advance(1)
  expect(alone.role).toBe('active')
})

test('a bridge whose question waits in a queue decides a second after the broker has received it', async () => {
  const room = new Room()
  const [elder, younger] = [room.join('a', EARLY), room.join('b', LATE)]
  younger.connected(false)
  room.isSlow = true
  elder.connected(true)
  await room.clock.advance(5000)
  expect(elder.role).toBe('undecided')
  room.isSlow = false
  room.deliver()
  await room.clock.advance(0)
  expect([elder.role, younger.role]).toEqual(['undecided', 'standby'])
  expect(room.takenOver).toEqual(['a'])
  await room.clock.advance(1000)
  expect(elder.role).toBe('active')
})

test('a bridge whose question the broker does not acknowledge is active after ten seconds', async () => {
  const room = new Room()
  room.isSlow = true
  const alone = room.join('a', EARLY)
  alone.connected(true)
  await room.clock.advance(9_999)
  expect(alone.role).toBe('undecided')
  await room.clock.advance(1)
  expect(alone.role).toBe('active')
})

test.each([
  ['the one that started first', ['b', EARLY], ['a', LATE]],
  ['the same one each time if two started at the same moment', ['a', EARLY], ['b', EARLY]],
] as const)(
  'of two that were both active %s stays active, whichever receives a message first',
  async (_, [first, firstAt], [second, at]) => {
    for (const turned of [false, true]) {
      const room = new Room()
      const elder = room.join(first, firstAt)
      const younger = room.join(second, at)
      for (const member of turned ? [younger, elder] : [elder, younger]) member.connected(false)
      await room.clock.advance(0)
      expect([elder.role, younger.role]).toEqual(['active', 'standby'])
      expect(room.takenOver).toEqual([first])
      expect([elder.contested, younger.contested]).toEqual([true, true])
    }
  },
)

test('of three bridges one becomes active, and the next one after its goodbye', async () => {
  const room = new Room()
  const [a, b, c] = [room.join('a', EARLY), room.join('b', LATE), room.join('c', '2026-01-01T00:00:02.000Z')]
  for (const member of [c, a, b]) {
    member.connected(true)
    await room.clock.advance(1000)
  }
  expect([a.role, b.role, c.role]).toEqual(['active', 'standby', 'standby'])
  a.stop()
  room.leave(a)
  await room.clock.advance(0)
  expect([b.role, c.role]).toEqual(['undecided', 'standby'])
  b.connected(false)
  expect(b.role).toBe('active')
})

test('a bridge that falls silent is assumed to be online for three minutes', async () => {
  const { room, elder, younger } = two()
  await room.clock.advance(10 * 60_000 - 1)
  expect(younger.role).toBe('standby')
  room.leave(elder)
  await room.clock.advance(119_000)
  expect(younger.role).toBe('standby')
  await room.clock.advance(61_000)
  expect(younger.role).toBe('undecided')
})

test('an older bridge that is reported offline gets a second to answer', async () => {
  const { room, elder, younger } = two()
  await room.clock.advance(0)
  younger.doubt()
  await room.clock.advance(1000)
  expect(younger.role).toBe('standby')
  room.leave(elder)
  younger.doubt()
  await room.clock.advance(1000)
  expect(younger.role).toBe('undecided')
})

test('an older bridge that is reported offline gets the second once the broker has received the question', async () => {
  const { room, elder, younger } = two()
  await room.clock.advance(0)
  room.isSlow = true
  younger.doubt()
  await room.clock.advance(5000)
  expect(younger.role).toBe('standby')
  room.deliver()
  await room.clock.advance(999)
  expect(younger.role).toBe('standby')
  room.isSlow = false
  room.deliver()
  await room.clock.advance(60_000)
  expect([elder.role, younger.role]).toEqual(['active', 'standby'])
})

test('an older bridge that is reported offline is considered stopped ten seconds after an unacknowledged question', async () => {
  const { room, younger } = two()
  await room.clock.advance(0)
  room.isSlow = true
  younger.doubt()
  await room.clock.advance(9_999)
  expect(younger.role).toBe('standby')
  await room.clock.advance(1)
  expect(younger.role).toBe('undecided')
})

test('an older bridge gets a minute to come back if this one has also been cut off and finds the state offline', async () => {
  const { room, elder, younger } = two()
  await room.clock.advance(0)
  younger.connected(true, true)
  await room.clock.advance(60_000)
  expect(younger.role).toBe('standby')
  room.leave(elder)
  younger.connected(true, true)
  await room.clock.advance(59_999)
  expect(younger.role).toBe('standby')
  await room.clock.advance(1)
  expect(younger.role).toBe('undecided')
})

test('bridges answer a request once, without a loop', async () => {
  const room = new Room()
  const members = ['a', 'b', 'c', 'd'].map((name) => room.join(name, EARLY))
  for (const member of members) member.connected(true)
  await room.clock.advance(1000)
  // Each bridge sends one request, and every other bridge answers each request once.
  expect(room.said).toHaveLength(4 + 4 * 3)
})

describe('an active bridge', () => {
  const older = { instance: 'older', started_at: EARLY }
  const begin = () => {
    const room = new Room()
    const member = room.join('b', LATE)
    member.connected(false)
    const hear = (message: object | string, retain = false) =>
      room.say(TOPIC, typeof message === 'string' ? message : JSON.stringify(message), undefined, retain)
    return { room, member, hear }
  }

  test('that steps back reports that it was active, whatever causes the step', async () => {
    const { room, hear } = begin()
    // Deliver a message of the older bridge's previous connection, and then a request of the older bridge.
    hear({ ...older, role: 'active' })
    hear({ ...older, role: 'undecided', asks: true })
    await room.clock.advance(0)
    const own = room.said.map((text) => JSON.parse(text)).filter(({ instance }) => instance === 'b')
    expect(own.map(({ role }) => role).slice(1)).toEqual(['active', 'standby'])
  })

  test('logs few of the bridges that a client invents, and still that it stands by', async () => {
    const { room, hear } = begin()
    for (let i = 0; i < 30; i += 1) hear({ instance: `invented ${i}`, started_at: '2999-01-01T00:00:00.000Z' })
    await room.clock.advance(0)
    expect(room.lines.length).toBeGreaterThan(1)
    expect(room.lines.length).toBeLessThanOrEqual(10)
    hear(older)
    await room.clock.advance(0)
    expect(room.lines.at(-1)).toContain('this one stands by')
  })

  test('ignores a retained or malformed presence message', async () => {
    const { room, member, hear } = begin()
    hear(older, true)
    for (const nonsense of ['', '{', '[]', '{"instance":1}', '{"instance":"x","started_at":"y"}', 'x'.repeat(5000)])
      hear(nonsense)
    await room.clock.advance(0)
    expect([member.role, room.lines]).toEqual(['active', []])
  })
})

test('a bridge whose role was undecided for more than a minute drops and counts what is outdated, but no command', async () => {
  const clock = new FakeClock()
  const drops: string[] = []
  const buffer = new StartupBuffer(clock, { dropped: (kind) => drops.push(kind) })
  const ran: string[] = []
  buffer.run(() => ran.push('old event'))
  buffer.run(() => ran.push('old command'), Number.POSITIVE_INFINITY)
  await clock.advance(60_001)
  buffer.run(() => ran.push('event'))
  buffer.flush()
  expect(ran).toEqual(['old command', 'event'])
  expect(drops).toEqual(['events'])
})

test('a bridge whose role is undecided drops and counts the oldest of more than 1,000 commands, but no retained one', () => {
  const drops: string[] = []
  const buffer = new StartupBuffer(new FakeClock(), { dropped: (kind) => drops.push(kind) })
  const ran: string[] = []
  const add = (name: string, retained = false) => buffer.run(() => ran.push(name), Number.POSITIVE_INFINITY, retained)
  add('retained', true)
  for (let i = 0; i < 1_100; i += 1) add(String(i))
  buffer.flush()
  expect([ran.length, ran[0], ran[1], ran.at(-1)]).toEqual([1_000, 'retained', '101', '1099'])
  expect(drops).toEqual(Array(101).fill('commands'))
})

test('a bridge whose role is undecided keeps no more of a long command than shows that it is too long', () => {
  const buffer = new StartupBuffer(new FakeClock(), { dropped: () => undefined })
  const received: Message[] = []
  const dispatcher = { receive: (message: Message) => received.push(message) }
  const packet = Buffer.alloc(4 * MAX_PAYLOAD_BYTES, 'x')
  const message = { topic: 't', retain: true, dup: false, qos: 1, receivedAt: 0, connection: 1 } as const
  for (const bytes of [packet.length, 2]) buffer.keep({ ...message, payload: packet.subarray(0, bytes) }, dispatcher)
  packet.fill('y')
  buffer.flush()
  const [long = Buffer.of(), short = Buffer.of()] = received.map(({ payload }) => payload)
  expect(long.buffer.byteLength).toBeLessThan(2 * MAX_PAYLOAD_BYTES)
  expect(() => decodeText(long)).toThrow('Expected at most')
  expect(short.toString()).toBe('xx')
})
