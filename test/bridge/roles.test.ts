import pino from 'pino'
import { expect, test } from 'vitest'
import { Presence } from '../../src/bridge/presence.ts'
import { StartupBuffer } from '../../src/bridge/startup-buffer.ts'
import { FakeClock } from '../support/fake-clock.ts'

const TOPIC = 'b/bridge/presence'
const EARLY = '2026-01-01T00:00:00.000Z'
const LATE = '2026-01-01T00:00:01.000Z'

/** Bridges that receive each other's presence messages, as over a broker. */
class Room {
  readonly clock = new FakeClock()
  readonly members: Presence[] = []
  readonly takenOver: string[] = []
  said = 0

  join(instance: string, startedAt: string): Presence {
    const member = new Presence({
      topic: TOPIC,
      startedAt,
      instance,
      link: {
        send: (topic, text) => {
          if (this.members.includes(member)) this.say(topic, text, member)
        },
      },
      onChange: () => {},
      hubs: new Map(),
      upkeep: { former: { add() {} } },
      onOtherActive: () => this.takenOver.push(instance),
      clock: this.clock,
      log: pino({ level: 'silent' }),
    })
    this.members.push(member)
    return member
  }

  leave(member: Presence): void {
    this.members.splice(this.members.indexOf(member), 1)
  }

  say(topic: string, text: string, from?: Presence): void {
    this.said += 1
    const payload = Buffer.from(text)
    const message = { topic, payload, retain: false, dup: false, qos: 1, receivedAt: 0, connection: 1 } as const
    queueMicrotask(() => {
      for (const member of this.members) if (member !== from) member.receive(message)
    })
  }
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
  const room = new Room()
  const [elder, younger] = [room.join('a', EARLY), room.join('b', LATE)]
  elder.connected(false)
  younger.connected(true)
  await room.clock.advance(10 * 60_000 - 1)
  expect(younger.role).toBe('standby')
  room.leave(elder)
  await room.clock.advance(119_000)
  expect(younger.role).toBe('standby')
  await room.clock.advance(61_000)
  expect(younger.role).toBe('undecided')
})

test('an older bridge that is reported offline gets a second to answer', async () => {
  const room = new Room()
  const [elder, younger] = [room.join('a', EARLY), room.join('b', LATE)]
  elder.connected(false)
  younger.connected(true)
  await room.clock.advance(0)
  younger.doubt()
  await room.clock.advance(1000)
  expect(younger.role).toBe('standby')
  room.leave(elder)
  younger.doubt()
  await room.clock.advance(1000)
  expect(younger.role).toBe('undecided')
})

test('bridges answer a request once, without a loop', async () => {
  const room = new Room()
  const members = ['a', 'b', 'c', 'd'].map((name) => room.join(name, EARLY))
  for (const member of members) member.connected(true)
  await room.clock.advance(1000)
  // Each bridge sends one request, and every other bridge answers each request once.
  expect(room.said).toBe(4 + 4 * 3)
})

test('a bridge whose role was undecided for more than a minute drops what is outdated, but no command', async () => {
  const clock = new FakeClock()
  const buffer = new StartupBuffer(clock)
  const ran: string[] = []
  buffer.run(() => ran.push('old event'))
  buffer.run(() => ran.push('old command'), Number.POSITIVE_INFINITY)
  await clock.advance(60_001)
  buffer.run(() => ran.push('event'))
  buffer.flush()
  expect(ran).toEqual(['old command', 'event'])
})
