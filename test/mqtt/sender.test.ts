/** Tests the order of publishes, on a connection that only records its messages. */
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

  /** The published messages as `topic=payload`, in order. */
  get sent(): string[] {
    return this.published.map(({ topic, payload }) => `${topic}=${payload}`)
  }
}

/** A separate connection. Resolving `ended` closes the connection. A test can answer each publish. */
class Trial extends Record {
  readonly ended = Promise.withResolvers<Failure>()
}

/** Waits for a turn of the event loop. A trial on the separate connection takes several turns. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

class Rig {
  readonly clock = new FakeClock()
  readonly log = new RecordingLog()
  readonly cleared: string[] = []
  readonly messages: string[] = []
  answered = 0
  readonly retained: Retained
  readonly events: Outbox
  readonly answers: Outbox
  readonly sender: Sender
  wire = new Record()
  offersAside = false
  readonly trials: Trial[] = []
  #acknowledged = 0

  constructor(options: Partial<SenderOptions> = {}) {
    const order = { next: 0 }
    this.retained = new Retained(order)
    this.events = new Outbox(order, true)
    this.answers = new Outbox(order, true)
    this.sender = new Sender({
      retained: this.retained,
      events: this.events,
      answers: this.answers,
      clock: this.clock,
      journal: new Journal(this.clock, this.log.logger),
      stateTopic: 'state',
      window: 32,
      ackTimeoutMs: 30_000,
      onTrial: async (task, signal) => {
        if (!this.offersAside) return CLOSED
        const trial = new Trial()
        this.trials.push(trial)
        await turn()
        const stopped = new Promise<Failure>((resolve) => signal.addEventListener('abort', () => resolve(CLOSED)))
        return await Promise.race([task(trial).then(() => undefined), trial.ended.promise, stopped])
      },
      echoes: {
        clearing: (topic) => this.cleared.push(topic),
        sending: (topic, payload) => this.messages.push(`${topic}=${payload}`),
      },
      onAnswer: () => {
        this.answered += 1
      },
      ...options,
    })
  }

  /** Attaches a connection to a broker that permits no read-back. */
  attach(wire: Partial<Record> = {}): this {
    this.wire = Object.assign(new Record(), wire)
    this.#acknowledged = 0
    this.retained.settle(() => false)
    this.sender.attach(this.wire)
    return this
  }

  /** Simulates a lost connection. Returns whether the sender can infer the broker's size limit from it. */
  lose(failure = CLOSED): boolean {
    const explained = this.sender.detach(failure)
    this.retained.forget()
    return explained
  }

  reconnect(): this {
    this.lose()
    return this.attach()
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

  /** Acknowledges the oldest unacknowledged publish. */
  ack(reason = 0): void {
    const next = this.wire.published[this.#acknowledged]
    if (next === undefined) throw new Error('nothing is on its way')
    this.#acknowledged += 1
    next.done(reason)
  }

  /** Answers all publishes on the separate connection. Returns the tried sizes in bytes. */
  async aside(outcome: (bytes: number, topic: string) => number | 'lost'): Promise<number[]> {
    const tried: number[] = []
    for (;;) {
      await turn()
      await turn()
      const trial = this.trials.at(-1)
      const publish = trial?.published.shift()
      if (trial === undefined || publish === undefined) return tried
      const { topic, payload, done } = publish
      tried.push(payload.length)
      const result = outcome(payload.length, topic)
      if (result === 'lost') trial.ended.resolve(CLOSED)
      else done(result)
    }
  }

  ackAll(): this {
    while (this.#acknowledged < this.wire.published.length) this.ack()
    return this
  }

  /** The topics that the log reports as not published, each with the reason. */
  get refused(): unknown[] {
    return this.log.lines.filter(({ reason }) => reason !== undefined).map(({ topic, reason }) => `${topic} ${reason}`)
  }
}

const asideRig = (options?: Partial<SenderOptions>) => Object.assign(new Rig(options), { offersAside: true })

const answer = { isAnswer: true }

describe('a connection', () => {
  test('is sent all held messages, and then online', () => {
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
    expect(rig.answered).toBe(0)
    expect(rig.sender).toMatchObject({ publishes: 3, bytes: 7, unacknowledged: 0, state: 'online' })
    rig.hold('a', '2')
    expect(rig.wire.sent.slice(3)).toEqual(['a=2'])
  })

  test('that is lost or closed is sent nothing', () => {
    const rig = new Rig().attach()
    rig.wire.isDown = true
    rig.hold('a', '1')
    expect(rig.wire.sent).toEqual(['state=online'])
    rig.wire.isDown = false
    rig.lose()
    rig.hold('b', '1')
    expect(rig.wire.sent).toEqual(['state=online'])
  })

  test('is dropped if an acknowledgement is missing', async () => {
    const rig = new Rig({ ackTimeoutMs: 1000 }).attach()
    await rig.clock.advance(600)
    rig.hold('a', '1')
    rig.ack()
    await rig.clock.advance(999)
    expect(rig.wire.dropped).toEqual([])
    await rig.clock.advance(1)
    expect(rig.wire.dropped).toEqual([{ code: 'timeout', detail: 'no PUBACK within 1000 ms' }])
    rig.lose({ code: 'timeout', detail: '' })
    expect(rig.clock.pending).toBe(0)
  })

  test('gets unacknowledged messages of the last one again, in order', () => {
    const rig = new Rig({ window: 4 }).attach().ackAll()
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

  test('does not get messages that are too old, which is logged', async () => {
    for (const [options, kind] of [
      [undefined, 'events'],
      [answer, 'answers'],
    ] as const) {
      const rig = new Rig()
      rig.say('old', '1', options)
      await rig.clock.advance(60_001)
      rig.attach()
      expect(rig.wire.sent).toEqual(['state=online'])
      expect(rig.log.loud).toEqual([expect.stringContaining(`dropping ${kind}`)])
      expect(rig.answered).toBe(kind === 'answers' ? 1 : 0)
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
    // The next commands wait until the answers to earlier ones are sent, so all three answers must count as sent.
    expect(rig.answered).toBe(3)
  })

  test('drops an event that is not permitted, and sends the next ones', () => {
    const rig = new Rig({ mayPublish: (topic) => topic !== 'secret' }).attach().ackAll()
    rig.say('secret', '1')
    rig.say('event', '1')
    rig.hold('a', '1')
    rig.ackAll()
    expect(rig.wire.sent).toEqual(['state=online', 'event=1', 'a=1'])
    expect([rig.events.waiting, rig.sender.unacknowledged]).toEqual([0, 0])
  })

  test('delays no answer for a message that is not permitted', () => {
    const rig = new Rig({ window: 1, mayPublish: (topic) => topic !== 'a' }).attach().ackAll()
    rig.hold('a', '1')
    for (const payload of ['1', '2', '3']) rig.say('answer', payload, answer)
    rig.ackAll()
    expect(rig.wire.sent).toEqual(['state=online', 'answer=1', 'answer=2', 'answer=3'])
  })
})

describe('the state of the bridge', () => {
  test('is repeated on request, and not after it was offline', async () => {
    const rig = new Rig().attach().ackAll()
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

  test('is offline after the waiting answers when the bridge ends, and before events', async () => {
    const rig = new Rig({ window: 2 }).attach().ackAll()
    for (const payload of ['1', '2', '3']) rig.say('event', payload)
    for (const payload of ['1', '2', '3', '4']) rig.say('answer', payload, answer)
    const finished = rig.sender.finish(rig.wire)
    rig.ackAll()
    await finished
    const sent = rig.wire.sent.filter((one) => !one.startsWith('event'))
    expect(sent).toEqual(['state=online', 'answer=1', 'answer=2', 'answer=3', 'answer=4', 'state=offline'])
    expect(rig.wire.sent.slice(-1)).toEqual(['event=3'])
  })

  test('ends immediately if the bridge may not write', async () => {
    const rig = new Rig().attach().ackAll()
    rig.sender.setWriting(false)
    await rig.sender.finish(rig.wire)
    expect(rig.wire.sent).toEqual(['state=online'])
  })

  test('waits, like all retained messages, while the bridge may not write; events and answers do not wait', () => {
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
  test('a topic does not get it again on this connection, and the log names it once', () => {
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

  test('many messages does not keep a retained topic out of the log', () => {
    const rig = new Rig().attach().ackAll()
    for (let i = 0; i < 30; i += 1) {
      rig.say(`elsewhere/${i % 15}`, 'x', answer)
      rig.ack(DENIED)
    }
    rig.hold('a', '1')
    rig.ack(DENIED)
    expect(rig.refused).toEqual([...Array.from({ length: 10 }, (_, i) => `elsewhere/${i} denied`), 'a denied'])
  })

  test('a message does not get it again', () => {
    const rig = new Rig().attach().ackAll()
    rig.say('event', '1')
    rig.ack(DENIED)
    expect(rig.refused).toEqual(['event denied'])
    expect([rig.sender.unacknowledged, rig.events.waiting, rig.events.dropped]).toEqual([0, 0, 1])
  })

  test('an invalid topic is not sent the message', () => {
    const rig = new Rig()
    rig.hold('a/#', '1')
    rig.attach()
    expect(rig.wire.sent).toEqual(['state=online'])
    expect(rig.refused).toEqual(['a/# invalid'])
  })
})

/** Returns a replacement for a message, but only if the message is too large. */
const tooLarge =
  (replacement: Replacement): SendOptions['ifRefused'] =>
  (why) =>
    why === 'too_large' ? replacement : undefined

describe('a message that is too large', () => {
  const options = { ...answer, ifRefused: tooLarge({ payload: 'short', options: { contentType: 'c' } }) }

  test('is not sent over the limit that the broker announces or is known to have', () => {
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
      expect(rig.log.lines.at(-1)).toMatchObject({ detail: 'it is larger than the broker accepts' })
    }
  })

  test('is measured with its topic and its properties', () => {
    const rig = new Rig().attach({ maximumPacketSize: 40 }).ackAll()
    rig.say('t', 'x'.repeat(23))
    rig.say('t', 'x'.repeat(24))
    rig.say('u', 'x'.repeat(20), { contentType: 'c' })
    expect(rig.wire.sent.slice(1)).toEqual([`t=${'x'.repeat(23)}`])
    expect(rig.messages).toHaveLength(1)
    expect(rig.refused).toEqual(['t too_large', 'u too_large'])
  })

  test('is replaced with a short one of the same kind, before and after it was sent', () => {
    const rig = new Rig().attach({ maximumPacketSize: 100 }).ackAll()
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

  test('shows the limit for the rest of the connection', async () => {
    const rig = new Rig().attach().ackAll()
    rig.say('a', 'x'.repeat(50))
    rig.ack(TOO_LARGE)
    rig.say('b', 'x'.repeat(50))
    rig.say('c', 'x'.repeat(49))
    expect(rig.wire.sent.slice(2)).toEqual([`c=${'x'.repeat(49)}`])
    rig.ackAll()
    await rig.clock.advance(501)
    rig.reconnect()
    rig.say('d', 'x'.repeat(50))
    expect(rig.wire.sent).toContain(`d=${'x'.repeat(50)}`)
  })

  test('shows the limit for the next connections if the refusal ends this one: such sizes are tried separately', async () => {
    const rig = asideRig().attach().ackAll()
    rig.say('a', 'x'.repeat(4000))
    rig.ack(TOO_LARGE)
    await rig.clock.advance(500)
    rig.reconnect().ackAll()
    for (const size of [3999, 4000, 5000, 2048]) rig.say(String(size), 'x'.repeat(size))
    rig.ackAll()
    expect(rig.wire.sent.map((text) => text.split('=')[0])).toEqual(['state', '2048'])
    expect(await rig.aside((bytes) => (bytes < 4000 ? 0 : TOO_LARGE))).toEqual([3999, 4000])
    expect(rig.refused).toEqual(['a too_large', '4000 too_large', '5000 too_large'])
    expect(rig.sender.unacknowledged).toBe(0)
  })

  test('is tried again separately on each connection, after five minutes, and later each time', async () => {
    const rig = asideRig().attach().ackAll()
    rig.hold('a', 'x'.repeat(4000))
    rig.ack(TOO_LARGE)
    rig.reconnect().ackAll()
    expect(await rig.aside(() => TOO_LARGE)).toEqual([4000])
    rig.ackAll()
    expect(rig.wire.sent).toEqual(['state=online'])
    for (const minutes of [10, 20, 40]) {
      await rig.clock.advance(minutes * 60_000 - 1)
      expect(await rig.aside(() => TOO_LARGE)).toEqual([])
      await rig.clock.advance(1)
      expect(await rig.aside(() => TOO_LARGE)).toEqual([4000])
    }
    expect(rig.wire.sent).toEqual(['state=online'])
    expect(rig.refused).toEqual(['a too_large'])
    await rig.clock.advance(80 * 60_000)
    expect(await rig.aside(() => 0)).toEqual([4000])
    rig.hold('a', 'y'.repeat(4000))
    expect(rig.wire.sent.slice(1)).toEqual([`a=${'y'.repeat(4000)}`])
  })

  test('explains the end of the connection on which it was refused, not that of the next', () => {
    const rig = new Rig().attach().ackAll()
    rig.say('a', 'x'.repeat(4000))
    rig.ack(TOO_LARGE)
    expect(rig.lose()).toBe(true)
    rig.attach().ackAll()
    expect(rig.lose()).toBe(false)
  })

  test('is too large if the broker refuses it now, even if it was accepted before', () => {
    const rig = new Rig().attach()
    rig.say('a', 'x'.repeat(5000))
    rig.ackAll()
    rig.say('b', 'x'.repeat(4000))
    rig.ack(TOO_LARGE)
    rig.reconnect().ackAll()
    rig.say('c', 'x'.repeat(4000))
    expect(rig.wire.sent).toEqual(['state=online'])
  })
})

describe('a publish at which connections end', () => {
  /** Loses each of `times` connections right after everything was sent. */
  function loseTimes(rig: Rig, times: number): void {
    for (let i = 0; i < times; i += 1) {
      rig.attach()
      rig.lose()
    }
  }
  const lost = () => 'lost' as const
  const topics = (rig: Rig) => rig.wire.sent.map((text) => text.split('=')[0])

  describe.each([
    ['on a separate connection', true],
    ['on the only connection', false],
  ])('is tried %s', (_where, offersAside) => {
    /** Closes the separate connection, if there is one, during a publish. Returns whether there was such a publish. */
    async function end(rig: Rig): Promise<boolean> {
      if (offersAside) return (await rig.aside(lost)).length > 0
      await turn()
      if (rig.sender.unacknowledged === 0) return false
      rig.reconnect().ackAll()
      return true
    }

    test('after two losses, and no longer after three', async () => {
      const rig = new Rig()
      rig.offersAside = offersAside
      rig.hold('a', '1')
      rig.hold('b', '1')
      loseTimes(rig, 2)
      rig.attach()
      // Nothing is sent, because either of the two messages may be the cause.
      expect(rig.wire.sent).toEqual([])
      if (offersAside) expect(await rig.aside((_bytes, topic) => (topic === 'a' ? 'lost' : 0))).toEqual([1, 1])
      else {
        await turn()
        expect(rig.wire.sent).toEqual(['a=1'])
        rig.reconnect()
        await turn()
        expect(rig.wire.sent).toEqual(['b=1'])
      }
      rig.ackAll()
      expect(rig.refused).toEqual(['a quarantined'])
      expect(rig.log.lines.find(({ reason }) => reason === 'quarantined')?.['detail']).toBe(
        '3 consecutive connections were lost while it was being published',
      )
      expect(rig.wire.sent.at(-1)).toBe('state=online')
    })

    test('again after five seconds, and later each time', async () => {
      const rig = new Rig()
      rig.offersAside = offersAside
      rig.hold('a', '1')
      loseTimes(rig, 2)
      rig.attach()
      for (const ms of [0, 5_000, 10_000, 20_000]) {
        if (ms > 0) await rig.clock.advance(ms - 1)
        if (ms > 0) expect(await end(rig)).toBe(false)
        await rig.clock.advance(1)
        expect(await end(rig)).toBe(true)
      }
      rig.ackAll()
      expect(rig.refused).toEqual(['a quarantined'])
    })

    test('and its size is blamed if no message as large was ever accepted', async () => {
      const rig = new Rig()
      rig.offersAside = offersAside
      rig.hold('a', 'x'.repeat(4000))
      loseTimes(rig, 1)
      rig.attach().ackAll()
      for (let i = 0; i < 2 && (await end(rig)); i += 1);
      rig.ackAll()
      expect(rig.refused).toEqual(['a too_large'])
      expect(rig.log.lines.find(({ reason }) => reason === 'too_large')?.['detail']).toBe(
        'the broker ends the connection when it receives it (4000 bytes)',
      )
      expect(rig.sender.state).toBe('online')
      await rig.clock.advance(5 * 60_000)
      if (offersAside) expect(await rig.aside(() => 0)).toEqual([4000])
      await turn()
      rig.ackAll()
      expect(rig.retained.blocked).toBe(0)
      rig.lose()
      expect(topics(rig.attach())).toContain('a')
    })
  })

  test('without a reason: all messages larger than any accepted one wait, and are tried separately, the smallest first', async () => {
    const rig = asideRig().attach()
    for (const size of [9000, 3000, 5000, 7000, 100]) rig.hold(String(size), 'x'.repeat(size))
    expect(rig.lose()).toBe(true)
    rig.hold('8000', 'x'.repeat(8000))
    rig.hold('equal', 'x'.repeat(7000))
    rig.attach()
    // The sender sends small messages immediately.
    expect(topics(rig)).toEqual(['100'])
    rig.ackAll()
    expect(await rig.aside((bytes) => (bytes < 7000 ? 0 : 'lost'))).toEqual([3000, 5000, 7000, 7000])
    rig.ackAll()
    expect(topics(rig)).toEqual(['100', 'state'])
    expect(rig.refused.toSorted()).toEqual(['7000', '8000', '9000', 'equal'].map((topic) => `${topic} too_large`))
    rig.hold('4000', 'x'.repeat(4000))
    expect(topics(rig).slice(2)).toEqual(['4000'])
    // The sender keeps the limit, and tests it again on each connection.
    rig.ackAll()
    rig.reconnect().ackAll()
    expect(await rig.aside(() => 0)).toEqual([7000, 8000, 9000])
    rig.ackAll()
    expect([rig.retained.blocked, rig.retained.waiting, rig.sender.state]).toEqual([0, 0, 'online'])
  })

  test('by chance: it is sent right after, and nothing waits any longer', async () => {
    const rig = asideRig().attach()
    for (const size of [3000, 3000, 5000]) rig.hold(`${size} ${rig.retained.waiting}`, 'x'.repeat(size))
    rig.say('answer', 'x'.repeat(4000), answer)
    rig.reconnect()
    // The sender tries only one message of each size.
    expect(await rig.aside(() => 0)).toEqual([3000, 4000, 5000])
    rig.ackAll()
    expect([rig.refused, rig.sender.unacknowledged, rig.sender.state]).toEqual([[], 0, 'online'])
    rig.hold('large', 'x'.repeat(9000))
    expect(rig.wire.sent.at(-1)).toMatch(/^large=/)
  })

  test('does not wait when a broker hangs, or because of another client', () => {
    for (const code of ['timeout', 'taken_over'] as const) {
      const rig = new Rig().attach()
      rig.hold('a', 'x'.repeat(4000))
      for (let i = 0; i < 5; i += 1) {
        expect(rig.lose({ code, detail: 'x' })).toBe(false)
        rig.attach()
        expect(topics(rig)).toContain('a')
      }
    }
  })

  test('is not judged by a separate connection that hangs or that ends together with the main one', async () => {
    const rig = asideRig().attach()
    rig.hold('a', 'x'.repeat(4000))
    rig.ackAll()
    rig.lose()
    rig.hold('a', 'y'.repeat(4000))
    for (let i = 0; i < 5; i += 1) {
      rig.attach()
      await turn()
      rig.lose()
    }
    rig.attach()
    await turn()
    rig.trials.at(-1)?.ended.resolve({ code: 'timeout', detail: 'x' })
    await turn()
    rig.ackAll()
    expect([rig.refused, rig.retained.blocked, rig.sender.state]).toEqual([[], 0, 'online'])
  })

  test('that another bridge may own, or that is cleared, is no longer tried', async () => {
    const rig = asideRig()
    for (const topic of ['a', 'b', 'c']) rig.hold(topic, 'x'.repeat(4000))
    loseTimes(rig, 1)
    rig.retained.release((topic) => topic === 'a')
    rig.attach()
    rig.retained.release((topic) => topic === 'b')
    rig.hold('c', null)
    expect(await rig.aside(() => 0)).toEqual([0])
    rig.ackAll()
    expect([rig.sender.unacknowledged, rig.sender.state]).toEqual([0, 'online'])
  })

  test('delays nothing while it may not be published, and is sent when it may', async () => {
    let may = true
    const rig = asideRig({ mayPublish: () => may })
    rig.hold('a', '1')
    loseTimes(rig, 2)
    may = false
    rig.attach()
    rig.say('answer', '1', answer)
    expect(rig.wire.sent).toEqual(['answer=1'])
    rig.ackAll()
    expect(await rig.aside(() => 0)).toEqual([])
    may = true
    rig.sender.pump()
    expect(await rig.aside(() => 0)).toEqual([1])
  })

  test('is remembered until the bridge may write again', async () => {
    const rig = asideRig().attach()
    rig.hold('a', 'x'.repeat(4000))
    rig.lose()
    rig.sender.setWriting(false)
    rig.attach()
    rig.sender.setWriting(true)
    expect(topics(rig)).not.toContain('a')
    expect(await rig.aside(() => 0)).toEqual([4000])
  })

  test('is dropped if it is an event or answer, and nothing else with it', async () => {
    const rig = asideRig().attach().ackAll()
    rig.say('bad', '1', answer)
    rig.say('good', '1')
    rig.lose()
    for (let i = 0; i < 2; i += 1) {
      rig.attach().ack()
      rig.lose()
    }
    rig.attach().ackAll()
    await rig.aside((_bytes, topic) => (topic === 'bad' ? 'lost' : 0))
    rig.ackAll()
    expect(rig.refused).toEqual(['bad quarantined'])
    expect([rig.sender.unacknowledged, rig.events.waiting, rig.answers.waiting, rig.events.dropped]).toEqual([
      0, 0, 0, 0,
    ])
    expect(rig.answers.dropped).toBe(1)
  })

  test('that was acknowledged once is counted from zero', () => {
    const rig = new Rig()
    rig.hold('a', '1')
    loseTimes(rig, 2)
    rig.attach().ackAll()
    rig.lose()
    loseTimes(rig, 2)
    expect(rig.refused).toEqual([])
  })

  test('is not blamed on a size that was accepted before, unless two connections in a row end at it', async () => {
    const rig = asideRig()
    rig.hold('a', 'x'.repeat(4000))
    rig.attach().ackAll()
    rig.lose()
    rig.hold('b', 'y'.repeat(4000))
    loseTimes(rig, 1)
    expect(topics(rig.attach())).toEqual(['b', 'a'])
    rig.lose()
    rig.hold('c', 'y'.repeat(3000))
    rig.attach()
    expect(topics(rig)).toEqual([])
    expect(await rig.aside((bytes) => (bytes < 4000 ? 0 : 'lost'))).toEqual([3000, 4000])
    expect(rig.refused.toSorted()).toEqual(['a too_large', 'b too_large'])
  })

  test('is the one that was refused right before, and not the others in flight', () => {
    const rig = asideRig()
    for (const topic of ['a', 'b', 'c']) rig.hold(topic, '1')
    for (let i = 0; i < 2; i += 1) {
      rig.attach()
      rig.wire.published.find(({ topic }) => topic === 'a')?.done(DENIED)
      rig.lose()
    }
    // The sender retries only the refused message on its own, so it sends the other messages immediately.
    expect(rig.attach().wire.sent).toEqual(['b=1', 'c=1'])
  })

  test('that is refused on a separate connection is denied, and the connection stays', async () => {
    const rig = asideRig()
    rig.hold('a', '1')
    rig.hold('b', '1')
    loseTimes(rig, 2)
    rig.attach()
    expect(await rig.aside((_bytes, topic) => (topic === 'a' ? DENIED : 0))).toEqual([1, 1])
    rig.ackAll()
    expect([rig.refused, rig.trials.length, rig.sender.state]).toEqual([['a denied'], 2, 'online'])
  })

  test('that ends the separate connection with its refusal leaves the other messages to the next one', async () => {
    const rig = asideRig()
    for (const topic of ['a', 'b']) rig.hold(topic, '1')
    loseTimes(rig, 2)
    rig.attach()
    await turn()
    await turn()
    rig.trials[0]?.ended.resolve(CLOSED)
    rig.trials[0]?.published.shift()?.done(DENIED)
    expect(await rig.aside(() => 0)).toEqual([1])
    rig.ackAll()
    expect([rig.wire.sent, rig.refused, rig.trials.length]).toEqual([['state=online'], ['a denied'], 2])
  })

  test('is no longer tried when the bridge ends', async () => {
    const rig = asideRig()
    rig.hold('a', 'x'.repeat(4000))
    loseTimes(rig, 1)
    rig.attach()
    await turn()
    const finished = rig.sender.finish(rig.wire)
    rig.ackAll()
    await finished
    await turn()
    expect(rig.wire.sent).toEqual(['state=offline'])
    expect([rig.trials.length, rig.refused]).toEqual([1, []])
  })

  test('leaves no timer when its connection ends', async () => {
    const rig = new Rig()
    rig.hold('a', '1')
    rig.hold('b', 'x'.repeat(4000))
    loseTimes(rig, 2)
    for (let i = 0; i < 4; i += 1) {
      rig.attach()
      await turn()
      rig.lose()
    }
    expect(rig.refused.toSorted()).toEqual(['a quarantined', 'b too_large'])
    rig.attach()
    expect(rig.clock.pending).toBeGreaterThan(1)
    rig.lose()
    expect(rig.clock.pending).toBe(0)
  })
})
