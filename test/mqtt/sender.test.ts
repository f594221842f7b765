/** What is sent when, by a sender on a wire that only writes down what it is given. */
import type { IClientPublishOptions } from 'mqtt'
import { describe, expect, test } from 'vitest'
import type { Failure } from '../../src/mqtt/failure.ts'
import { Journal } from '../../src/mqtt/journal.ts'
import { Outbox } from '../../src/mqtt/outbox.ts'
import { Retained } from '../../src/mqtt/retained.ts'
import { Sender, type SenderOptions, type Wire } from '../../src/mqtt/sender.ts'
import type { Replacement, SendOptions } from '../../src/mqtt/types.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { RecordingLog } from './support.ts'

const CLOSED: Failure = { code: 'closed', detail: 'x' }
const TOO_LARGE = 149
const DENIED = 135

interface Published {
  readonly topic: string
  readonly payload: string
  readonly options: IClientPublishOptions
  readonly done: (reason: number) => void
}

class Record implements Wire {
  readonly published: Published[] = []
  readonly dropped: Failure[] = []
  isDown = false
  receiveMaximum = 65_535
  maximumPacketSize = Number.POSITIVE_INFINITY

  publish(topic: string, payload: string, options: IClientPublishOptions, done: (reason: number) => void): void {
    this.published.push({ topic, payload, options, done })
  }

  drop(failure: Failure): void {
    this.dropped.push(failure)
  }

  /** `topic=payload`, in the order in which they were sent. */
  get sent(): string[] {
    return this.published.map(({ topic, payload }) => `${topic}=${payload}`)
  }
}

class Rig {
  readonly clock = new FakeClock()
  readonly log = new RecordingLog()
  readonly cleared: string[] = []
  readonly messages: string[] = []
  acked = 0
  readonly retained: Retained
  readonly events: Outbox
  readonly answers: Outbox
  readonly sender: Sender
  wire = new Record()
  #acknowledged = 0

  constructor(options: Partial<SenderOptions> = {}) {
    const order = { next: 0 }
    const keyed = { keyOf: (topic: string) => topic, ageMs: 1000 }
    this.retained = new Retained(order)
    this.events = new Outbox(order, keyed)
    this.answers = new Outbox(order, keyed)
    this.sender = new Sender({
      retained: this.retained,
      events: this.events,
      answers: this.answers,
      clock: this.clock,
      journal: new Journal(this.clock, this.log.logger),
      stateTopic: 'state',
      window: 32,
      ackTimeoutMs: 30_000,
      onClear: (topic) => this.cleared.push(topic),
      onMessage: (topic, payload) => this.messages.push(`${topic}=${payload}`),
      onAcked: () => {
        this.acked += 1
      },
      ...options,
    })
  }

  /** A new connection to a broker that lets nothing be read back. */
  attach(wire: Partial<Record> = {}): this {
    this.wire = Object.assign(new Record(), wire)
    this.#acknowledged = 0
    this.retained.settle(() => false)
    this.sender.attach(this.wire)
    return this
  }

  /** Returns whether that has shown a size that ends connections. */
  lose(failure = CLOSED): boolean {
    const explained = this.sender.detach(failure)
    this.retained.forget()
    return explained
  }

  hold(topic: string, payload: string | null): void {
    this.retained.hold(topic, payload)
    this.sender.pump()
  }

  say(topic: string, payload: string, options?: SendOptions): void {
    const outbox = options?.isAnswer === true ? this.answers : this.events
    outbox.push(topic, payload, options, this.clock.elapsed())
    this.sender.pump()
  }

  /** The broker's answer to the oldest publish without one. */
  ack(reason = 0): void {
    const next = this.wire.published[this.#acknowledged]
    if (next === undefined) throw new Error('nothing is on its way')
    this.#acknowledged += 1
    next.done(reason)
  }

  /** Acknowledges all that is sent. */
  ackAll(): void {
    while (this.#acknowledged < this.wire.published.length) this.ack()
  }

  /** Fields of the log's lines on what is not published. */
  get refused(): unknown[] {
    return this.log.lines.filter(({ reason }) => reason !== undefined).map(({ topic, reason }) => `${topic} ${reason}`)
  }
}

const answer = { isAnswer: true }

describe('a connection', () => {
  test('is told everything that is wanted, retained, and then that the bridge is online', () => {
    const rig = new Rig()
    rig.hold('a', '1')
    rig.hold('b', null)
    expect(rig.attach().wire.sent).toEqual(['a=1', 'b='])
    expect(rig.cleared).toEqual(['b'])
    expect([rig.sender.unacknowledged, rig.sender.state]).toEqual([2, undefined])
    rig.ack()
    expect(rig.wire.sent).toHaveLength(2)
    rig.ack()
    expect(rig.wire.sent[2]).toBe('state=online')
    expect(rig.wire.published.map(({ options }) => options)).toEqual(Array(3).fill({ qos: 1, retain: true }))
    rig.ackAll()
    expect(rig.acked).toBe(3)
    expect(rig.sender).toMatchObject({ publishes: 3, bytes: 7, unacknowledged: 0, state: 'online' })
    rig.hold('a', '2')
    expect(rig.wire.sent.slice(3)).toEqual(['a=2'])
  })

  test('that is down or gone is sent nothing', () => {
    const rig = new Rig().attach()
    rig.wire.isDown = true
    rig.hold('a', '1')
    expect(rig.wire.sent).toEqual(['state=online'])
    rig.wire.isDown = false
    rig.lose()
    rig.hold('b', '1')
    expect(rig.wire.sent).toEqual(['state=online'])
  })

  test('has no more unacknowledged than the bridge or the broker wants', () => {
    for (const [window, receiveMaximum] of [
      [2, 65_535],
      [32, 2],
    ] as const) {
      const rig = new Rig({ window })
      for (const topic of ['a', 'b', 'c']) rig.hold(topic, '1')
      rig.attach({ receiveMaximum })
      expect(rig.wire.sent).toEqual(['a=1', 'b=1'])
      rig.ack()
      expect(rig.wire.sent).toEqual(['a=1', 'b=1', 'c=1'])
    }
  })

  test('on which an acknowledgement is missing is dropped', async () => {
    const rig = new Rig({ ackTimeoutMs: 1000 }).attach()
    await rig.clock.advance(600)
    rig.hold('a', '1')
    rig.ack()
    await rig.clock.advance(999)
    expect(rig.wire.dropped).toEqual([])
    await rig.clock.advance(1)
    expect(rig.wire.dropped).toEqual([{ code: 'timeout', detail: 'no acknowledgement of a publish within 1000 ms' }])
    rig.lose({ code: 'timeout', detail: '' })
    expect(rig.clock.pending).toBe(0)
  })

  test('gets again what the last one did not acknowledge, in its order', () => {
    const rig = new Rig({ window: 4 }).attach()
    rig.ackAll()
    for (const payload of ['1', '2']) rig.say('event', payload)
    rig.say('answer', '1', answer)
    rig.hold('a', '1')
    expect(rig.wire.sent).toHaveLength(5)
    rig.lose()
    expect([rig.sender.unacknowledged, rig.events.waiting, rig.answers.waiting]).toEqual([0, 2, 1])
    rig.attach()
    expect(rig.wire.sent.toSorted()).toEqual(['a=1', 'answer=1', 'event=1', 'event=2'])
    rig.ackAll()
    expect(rig.wire.sent.at(-1)).toBe('state=online')
  })

  test('does not get what is too old, and the log says so', async () => {
    for (const [options, kind] of [
      [undefined, 'events'],
      [answer, 'answers'],
    ] as const) {
      const rig = new Rig()
      rig.say('old', '1', options)
      await rig.clock.advance(1001)
      rig.attach()
      expect(rig.wire.sent).toEqual(['state=online'])
      expect(rig.log.loud).toEqual([expect.stringContaining(`${kind} are dropped`)])
    }
    const fresh = new Rig()
    fresh.say('new', '1')
    fresh.attach()
    expect(fresh.log.loud).toEqual([])
  })
})

describe('the order of sending', () => {
  test('is that of the calls for states and events', () => {
    const rig = new Rig({ window: 1 }).attach()
    rig.hold('a', '1')
    rig.say('event', '1')
    rig.hold('b', '1')
    rig.ackAll()
    expect(rig.wire.sent).toEqual(['state=online', 'a=1', 'event=1', 'b=1'])
  })

  test('lets answers and everything else take turns', () => {
    const rig = new Rig({ window: 1 }).attach()
    for (const payload of ['1', '2', '3']) rig.say('event', payload)
    for (const payload of ['1', '2', '3']) rig.say('answer', payload, answer)
    rig.ackAll()
    expect(rig.wire.sent.slice(1)).toEqual(['answer=1', 'event=1', 'answer=2', 'event=2', 'answer=3', 'event=3'])
    expect(rig.messages).toEqual(rig.wire.sent.slice(1))
  })
})

describe('the state of the bridge', () => {
  test('is repeated on request, and not after it was offline', async () => {
    const rig = new Rig().attach()
    rig.ackAll()
    rig.sender.repeatState()
    rig.sender.pump()
    rig.ackAll()
    expect(rig.wire.sent).toEqual(['state=online', 'state=online'])
    const finished = rig.sender.finish(rig.wire)
    rig.sender.repeatState()
    rig.sender.pump()
    rig.ackAll()
    await finished
    expect(rig.wire.sent.slice(2)).toEqual(['state=offline'])
  })

  test('is offline before all that waits when the bridge ends, which is when all is acknowledged', async () => {
    const rig = new Rig({ window: 1 }).attach()
    rig.hold('a', '1')
    rig.hold('b', '1')
    let finished = false
    const end = rig.sender.finish(rig.wire).then(() => {
      finished = true
    })
    rig.ack()
    expect(rig.wire.sent).toEqual(['state=online', 'state=offline'])
    rig.ack()
    rig.ack()
    await rig.clock.advance(0)
    expect(finished).toBe(false)
    rig.ack()
    await end
    expect(rig.wire.sent.slice(2)).toEqual(['a=1', 'b=1'])
  })

  test('is offline also on a connection that was not used yet', async () => {
    const rig = new Rig()
    const finished = rig.sender.finish(rig.wire)
    expect(rig.wire.sent).toEqual(['state=offline'])
    rig.ack()
    await finished
  })

  test('is at its end at once where nothing may be written', async () => {
    const rig = new Rig().attach()
    rig.ackAll()
    rig.sender.setWriting(false)
    await rig.sender.finish(rig.wire)
    expect(rig.wire.sent).toEqual(['state=online'])
  })

  test('and all that is retained waits while the bridge may not write; events and answers do not', () => {
    const rig = new Rig()
    rig.sender.setWriting(false)
    rig.hold('a', '1')
    rig.attach()
    rig.say('event', '1')
    rig.say('answer', '1', answer)
    rig.ackAll()
    expect(rig.wire.sent.toSorted()).toEqual(['answer=1', 'event=1'])
    rig.sender.setWriting(true)
    rig.ackAll()
    expect(rig.wire.sent.slice(2)).toEqual(['a=1', 'state=online'])
  })
})

describe('a broker that refuses', () => {
  test('a topic is sent it no more on this connection, and the log names it once', () => {
    const rig = new Rig()
    rig.hold('a', '1')
    rig.attach().ack(DENIED)
    expect(rig.refused).toEqual(['a denied'])
    expect(rig.log.lines.at(-1)).toMatchObject({ detail: 'the broker refuses it with reason 135' })
    rig.ackAll()
    expect(rig.wire.sent).toEqual(['a=1', 'state=online'])
    rig.hold('a', '2')
    rig.wire.published.at(-1)?.done(DENIED)
    expect(rig.refused).toEqual(['a denied'])
    expect(rig.retained.blocked).toBe(1)
  })

  test('a message is not sent it again', () => {
    const rig = new Rig().attach()
    rig.ackAll()
    rig.say('event', '1')
    rig.ack(DENIED)
    expect(rig.refused).toEqual(['event denied'])
    expect([rig.sender.unacknowledged, rig.events.waiting, rig.acked]).toEqual([0, 0, 2])
  })

  test('a topic that is none is not asked', () => {
    const rig = new Rig()
    rig.hold('a/#', '1')
    rig.attach()
    expect(rig.wire.sent).toEqual(['state=online'])
    expect(rig.refused).toEqual(['a/# invalid'])
  })
})

/** Only for what is too large. */
const tooLarge =
  (replacement: Replacement): SendOptions['ifRefused'] =>
  (why) =>
    why === 'too_large' ? replacement : undefined

describe('a message that is too large', () => {
  const options = { ...answer, ifRefused: tooLarge({ payload: 'short', options: { contentType: 'c' } }) }

  test('is not sent over the limit that the broker tells or is known to have', () => {
    for (const [known, told] of [
      [undefined, 40],
      [40, Number.POSITIVE_INFINITY],
    ] as const) {
      const rig = new Rig({ maximumPacketSize: known })
      rig.hold('a', 'x'.repeat(23))
      rig.hold('b', 'x'.repeat(24))
      rig.attach({ maximumPacketSize: told })
      expect(rig.wire.sent).toEqual([`a=${'x'.repeat(23)}`])
      expect(rig.refused).toEqual(['b too_large'])
      expect(rig.log.lines.at(-1)).toMatchObject({ detail: 'it is larger than the broker takes' })
    }
  })

  test('is counted with its topic and its properties', () => {
    const rig = new Rig().attach({ maximumPacketSize: 40 })
    rig.ackAll()
    rig.say('t', 'x'.repeat(23))
    rig.say('t', 'x'.repeat(24))
    rig.say('t', 'x'.repeat(20), { contentType: 'c' })
    expect(rig.wire.sent.slice(1)).toEqual([`t=${'x'.repeat(23)}`])
    expect(rig.messages).toHaveLength(1)
    expect(rig.refused).toEqual(['t too_large', 't too_large'])
  })

  test('is replaced by a short one of the same kind, before and after it was sent', () => {
    const rig = new Rig().attach({ maximumPacketSize: 100 })
    rig.ackAll()
    rig.say('told', 'x'.repeat(200), options)
    expect(rig.wire.sent.slice(1)).toEqual(['told=short'])
    expect(rig.wire.published[1]?.options.properties).toEqual({ contentType: 'c' })
    rig.ack()
    rig.say('found', 'x'.repeat(30), options)
    rig.ack(TOO_LARGE)
    expect(rig.wire.sent.slice(3)).toEqual(['found=short'])
    rig.say('event', 'x'.repeat(30), { ifRefused: () => ({ payload: 'event' }) })
    rig.ackAll()
    expect(rig.wire.sent.at(-1)).toBe('event=event')
    rig.say('denied', 'y', options)
    rig.ack(DENIED)
    expect(rig.wire.sent.at(-1)).toBe('denied=y')
  })

  test('teaches its size for the rest of the connection', () => {
    const rig = new Rig().attach()
    rig.ackAll()
    rig.say('a', 'x'.repeat(50))
    rig.ack(TOO_LARGE)
    rig.say('b', 'x'.repeat(50))
    rig.say('c', 'x'.repeat(49))
    expect(rig.wire.sent.slice(2)).toEqual([`c=${'x'.repeat(49)}`])
    rig.lose()
    rig.attach()
    rig.say('d', 'x'.repeat(50))
    expect(rig.wire.sent).toContain(`d=${'x'.repeat(50)}`)
  })

  test('teaches its size for the next connections where the refusal ends this one', async () => {
    const rig = new Rig().attach()
    rig.ackAll()
    const refuse = async (ms: number) => {
      rig.say('a', 'x'.repeat(4000))
      rig.ack(TOO_LARGE)
      await rig.clock.advance(ms)
      rig.lose()
      rig.attach().ackAll()
    }
    await refuse(51)
    await refuse(50)
    for (const size of [4000, 3500, 3499]) rig.say(String(size), 'x'.repeat(size))
    expect(rig.wire.sent.map((text) => text.split('=')[0])).toEqual(['state', '3499'])
  })

  test('is tried again five seconds after that, and later each time that it costs a connection', async () => {
    const rig = new Rig().attach()
    rig.ackAll()
    rig.hold('a', 'x'.repeat(4000))
    for (const ms of [5_000, 10_000, 20_000]) {
      rig.ack(TOO_LARGE)
      rig.lose()
      rig.attach().ackAll()
      await rig.clock.advance(ms - 1)
      expect(rig.wire.sent).toEqual(['state=online'])
      await rig.clock.advance(1)
      expect(rig.wire.sent).toHaveLength(2)
    }
  })

  test('explains the end of the connection on which it was refused, not that of the next', () => {
    const rig = new Rig().attach()
    rig.ackAll()
    rig.say('a', 'x'.repeat(4000))
    rig.ack(TOO_LARGE)
    expect(rig.lose()).toBe(true)
    rig.attach().ackAll()
    expect(rig.lose()).toBe(false)
  })

  test('that was taken before is too large for a broker that refuses it now', () => {
    const rig = new Rig().attach()
    rig.say('a', 'x'.repeat(5000))
    rig.ackAll()
    rig.say('b', 'x'.repeat(4000))
    rig.ack(TOO_LARGE)
    rig.lose()
    rig.attach().ackAll()
    rig.say('c', 'x'.repeat(4000))
    expect(rig.wire.sent).toEqual(['state=online'])
  })
})

describe('a publish at which connections end', () => {
  /** Loses so many connections right after all that may be sent was sent. */
  function loseTimes(rig: Rig, times: number): void {
    for (let i = 0; i < times; i += 1) {
      rig.attach()
      rig.lose()
    }
  }

  test('is sent alone after two, and not any more after three', () => {
    const rig = new Rig()
    rig.hold('a', '1')
    rig.hold('b', '1')
    loseTimes(rig, 2)
    expect(rig.attach().wire.sent).toEqual(['a=1'])
    rig.lose()
    expect(rig.refused).toEqual(['a quarantined'])
    expect(rig.log.lines.at(-1)).toMatchObject({ detail: '3 connections in a row were lost as it was being published' })
    rig.attach()
    expect(rig.wire.sent).toEqual(['b=1'])
    rig.ackAll()
    expect(rig.wire.sent).toEqual(['b=1', 'state=online'])
  })

  test('is tried again when the connection is five seconds old, and later each time', async () => {
    const rig = new Rig()
    rig.hold('a', '1')
    loseTimes(rig, 3)
    rig.attach().ackAll()
    await rig.clock.advance(4999)
    expect(rig.wire.sent).toEqual(['state=online'])
    await rig.clock.advance(1)
    expect(rig.wire.sent).toEqual(['state=online', 'a=1'])
    rig.lose()
    rig.attach().ackAll()
    await rig.clock.advance(9999)
    expect(rig.wire.sent).toEqual(['state=online'])
    await rig.clock.advance(1)
    expect(rig.wire.sent).toEqual(['state=online', 'a=1'])
    rig.ackAll()
    await rig.clock.advance(60_000)
    expect(rig.clock.pending).toBe(0)
  })

  test('keeps nothing back while it may not be published, and is sent when it may', () => {
    let may = true
    const rig = new Rig({ mayPublish: () => may })
    rig.hold('a', '1')
    loseTimes(rig, 2)
    may = false
    rig.attach()
    rig.say('answer', '1', answer)
    expect(rig.wire.sent).toEqual(['answer=1'])
    rig.ackAll()
    may = true
    rig.sender.pump()
    expect(rig.wire.sent).toEqual(['answer=1', 'a=1'])
  })

  test('is lost if it is a message, and nothing else with it', () => {
    const rig = new Rig().attach()
    rig.ackAll()
    rig.say('bad', '1', answer)
    rig.say('good', '1')
    rig.lose()
    for (let i = 0; i < 2; i += 1) {
      rig.attach().ack()
      rig.lose()
    }
    rig.attach().ackAll()
    expect(rig.wire.sent.toSorted()).toEqual(['good=1', 'state=online'])
    expect(rig.refused).toEqual(['bad quarantined'])
  })

  test('that was acknowledged once starts anew', () => {
    const rig = new Rig()
    rig.hold('a', '1')
    loseTimes(rig, 2)
    rig.attach().ackAll()
    rig.lose()
    loseTimes(rig, 2)
    expect(rig.refused).toEqual([])
  })

  test('is blamed on its size where none so large was ever taken, and its size is tried again later', async () => {
    const large = 'x'.repeat(4000)
    const rig = new Rig()
    rig.hold('a', large)
    loseTimes(rig, 1)
    expect(rig.attach().lose()).toBe(true)
    expect(rig.refused).toEqual(['a too_large'])
    expect(rig.log.lines.at(-1)).toMatchObject({
      detail: 'the broker ends the connection when it gets it, with 4000 bytes',
    })
    rig.attach().ackAll()
    expect(rig.wire.sent).toEqual(['state=online'])
    await rig.clock.advance(5 * 60_000)
    expect(rig.wire.sent).toEqual(['state=online', `a=${large}`])
    rig.ackAll()
    rig.lose()
    rig.attach()
    expect(rig.wire.sent).toEqual([`a=${large}`])
  })

  test('is tried again soon where the broker took such a size before it refused one', async () => {
    const rig = new Rig().attach()
    rig.say('a', 'x'.repeat(5000))
    rig.ackAll()
    rig.hold('b', 'x'.repeat(4000))
    rig.ack(TOO_LARGE)
    rig.lose()
    rig.attach()
    await rig.clock.advance(5_000)
    loseTimes(rig, 2)
    rig.attach().ackAll()
    expect(rig.wire.sent).toEqual(['state=online'])
    await rig.clock.advance(20_000)
    expect(rig.wire.sent.map((text) => text.slice(0, 10))).toEqual(['state=onli', 'b=xxxxxxxx'])
  })

  test('is not blamed on a size that was taken before', () => {
    const rig = new Rig()
    rig.hold('a', 'x'.repeat(4000))
    rig.attach().ackAll()
    rig.lose()
    rig.hold('b', 'y'.repeat(4000))
    loseTimes(rig, 2)
    expect(rig.refused).toEqual([])
  })

  test('is the one that was refused right before, and not what was sent beside it', () => {
    const rig = new Rig()
    for (const topic of ['a', 'b', 'c']) rig.hold(topic, '1')
    for (let i = 0; i < 2; i += 1) {
      rig.attach()
      rig.wire.published.find(({ topic }) => topic === 'a')?.done(DENIED)
      rig.lose()
    }
    // That one is sent alone from now on, the others are not.
    expect(rig.attach().wire.sent).toEqual(['b=1', 'c=1'])
  })

  test('leaves no timer behind when its connection ends', () => {
    const rig = new Rig()
    rig.hold('a', '1')
    loseTimes(rig, 3)
    rig.hold('b', 'x'.repeat(4000))
    loseTimes(rig, 2)
    rig.attach()
    expect(rig.clock.pending).toBeGreaterThan(1)
    rig.lose()
    expect(rig.clock.pending).toBe(0)
  })
})
