import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Pacing } from '../../src/mqtt/addresses.ts'
import { InboundQueue } from '../../src/mqtt/inbound.ts'
import { topicFault, topicMatcher } from '../../src/mqtt/names.ts'
import { Outbox } from '../../src/mqtt/outbox.ts'
import { type Entry, type PayloadSource, Retained } from '../../src/mqtt/retained.ts'
import type { Message, Protocol } from '../../src/mqtt/types.ts'
import { runs } from '../support/runs.ts'
import { until } from '../support/until.ts'

/** A simple model of a broker and of a connection with a send window. */
class Model {
  readonly retained = new Retained({ next: 0 })
  readonly wanted = new Map<string, string | null>()
  readonly broker = new Map<string, string>()
  readonly foreign = new Map<string, string>()
  readonly #recall: PayloadSource = (topic) => this.wanted.get(topic) ?? undefined
  #wire: { entry: Entry; payload: string | null }[] = []
  /** Topics on which the broker holds a payload that differs from the expected payload. */
  readonly #denied = new Set<string>()
  #online = false
  #knowing = false

  /** @param again whether the payload can be rendered again */
  hold(topic: string, payload: string | null, again: boolean): void {
    this.wanted.set(topic, payload)
    this.retained.hold(topic, payload, again && payload !== null ? this.#recall : undefined)
    this.#pump()
  }

  ack(): void {
    const sent = this.#wire.shift()
    if (sent === undefined) return
    this.#store(sent.entry.topic, sent.payload)
    this.retained.acked(sent.entry)
    this.#pump()
  }

  /** Denies the oldest publish, as an ACL does. */
  deny(): void {
    const sent = this.#wire.shift()
    if (sent === undefined) return
    this.retained.refused(sent.entry, 'denied')
    this.#denied.add(sent.entry.topic)
    this.#pump()
  }

  /** Ends the connection. `arrived` is the number of messages in flight that the broker has received. */
  lose(arrived: number): void {
    for (const { entry, payload } of this.#wire.slice(0, arrived)) this.#store(entry.topic, payload)
    for (const { entry } of this.#wire) this.retained.lost(entry)
    this.#wire = []
    this.#online = false
    this.retained.forget()
  }

  /** Connects to a broker, which starts empty if `forgotten`, and permits a read-back if `readable`. */
  connect(forgotten: boolean, readable: boolean): void {
    if (this.#online) this.lose(0)
    if (forgotten) {
      this.broker.clear()
      this.foreign.clear()
    }
    if (readable) for (const [topic, text] of this.broker) this.retained.found(topic, `${text}`)
    this.retained.settle(() => readable)
    this.#online = true
    this.#knowing = readable
    this.#pump()
  }

  /** While the bridge is offline, publishes on one of its topics and on a foreign topic, as another client does. */
  publishByOther(topic: string): void {
    this.lose(3)
    this.broker.set(topic, 'a')
    this.broker.set('foreign', 'theirs')
    this.foreign.set('foreign', 'theirs')
  }

  sweep(): void {
    this.retained.sweep((topic) => !topic.startsWith('foreign'))
    this.#pump()
  }

  drain(): void {
    while (this.#wire.length > 0) this.ack()
  }

  #pump(): void {
    while (this.#online && this.#wire.length < 3) {
      const entry = this.retained.peek()
      if (entry === undefined) return
      const payload = this.retained.take(entry)
      expect(this.#wire.some((sent) => sent.entry.topic === entry.topic)).toBe(false)
      if (this.#knowing && !this.#denied.has(entry.topic))
        expect(payload).not.toBe(this.broker.get(entry.topic) ?? null)
      this.#wire.push({ entry, payload })
    }
  }

  #store(topic: string, payload: string | null): void {
    if (payload === null) this.broker.delete(topic)
    else this.broker.set(topic, payload)
  }
}

function unowned(retained: Retained): string[] {
  const topics: string[] = []
  retained.sweep((topic) => {
    topics.push(topic)
    return false
  })
  return topics
}

type Step =
  | readonly ['hold', number, string | null, boolean]
  | readonly ['ack' | 'deny' | 'sweep']
  | readonly ['lose' | 'ghost', number]
  | readonly ['connect', boolean, boolean]

function take(model: Model, step: Step): void {
  if (step[0] === 'hold') model.hold(`t${step[1]}`, step[2], step[3])
  else if (step[0] === 'lose') model.lose(step[1])
  else if (step[0] === 'connect') model.connect(step[1], step[2])
  else if (step[0] === 'ghost') model.publishByOther(`t${step[1]}`)
  else model[step[0]]()
}

describe('the retained set', () => {
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.tuple(fc.constant('hold' as const), fc.nat(5), fc.constantFrom(null, 'a', 'b', 'c'), fc.boolean()),
    },
    { weight: 4, arbitrary: fc.tuple(fc.constant('ack' as const)) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('deny' as const)) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('lose' as const), fc.nat(3)) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('connect' as const), fc.boolean(), fc.boolean()) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('sweep' as const)) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('ghost' as const), fc.nat(8)) },
  )

  test('whatever happens, the broker finally has exactly the wanted messages, and never receives one that it has', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const model = new Model()
        for (const step of steps) take(model, step)
        model.connect(false, true)
        model.sweep()
        model.drain()
        const expected = [...model.wanted].filter(([, payload]) => payload !== null)
        expect([...model.broker].sort()).toEqual([...expected, ...model.foreign].sort())
        expect(model.retained).toMatchObject({ awaiting: 0, waiting: 0, blocked: 0 })
        expect(unowned(model.retained)).toEqual([...model.foreign.keys()])
      }),
      { numRuns: runs(500) },
    )
  })

  test('a broker that permits no read-back still gets exactly the wanted messages', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.boolean(), (steps, forgotten) => {
        const model = new Model()
        // Without a read-back, the bridge cannot detect messages that other clients leave on a cleared topic.
        for (const step of steps) if (step[0] !== 'ghost') take(model, step)
        model.connect(forgotten, false)
        model.drain()
        for (const [topic, payload] of model.wanted) expect(model.broker.get(topic) ?? null).toBe(payload)
      }),
      { numRuns: runs(500) },
    )
  })
})

describe('the outbox', () => {
  const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => String(from + i))
  const outboxOf = (...payloads: string[]) => {
    const outbox = new Outbox({ next: 0 }, true)
    for (const payload of payloads) outbox.push('t', payload, undefined, 0)
    return outbox
  }
  const drain = (outbox: Outbox) => {
    const payloads: string[] = []
    for (let message = outbox.peek(); message !== undefined; message = outbox.peek()) {
      outbox.take()
      payloads.push(message.payload)
    }
    expect(outbox).toMatchObject({ waiting: 0, bytes: 0 })
    return payloads
  }

  test('drops the oldest when it is full, by number and by bytes, while there is no broker', () => {
    const outbox = outboxOf(...numbers(0, 1000))
    expect(outbox.dropped).toBe(1)
    expect(drain(outbox)).toEqual(numbers(1, 1000))
    const large = 'x'.repeat(4 * 1024 * 1024 - 3)
    const full = outboxOf('1', '2', '3', '4', large)
    expect(full.dropped).toBe(3)
    expect(drain(full)).toEqual(['4', large])
    full.push('t', `${large}xxx`, undefined, 0)
    expect(drain(full)).toEqual([])
  })

  test('keeps what it accepted while there was a broker, and does not grow without one', () => {
    const outbox = outboxOf()
    outbox.connected = true
    for (const payload of numbers(0, 1009)) outbox.push('t', payload, undefined, 0)
    outbox.connected = false
    outbox.push('t', 'new', undefined, 0)
    expect(outbox.dropped).toBe(1)
    expect(drain(outbox)).toEqual([...numbers(1, 1009), 'new'])
  })

  test('lets topics take turns, each in order, and drops messages of the one that sends most', () => {
    const outbox = outboxOf()
    outbox.push('one', 'a', undefined, 0)
    for (const payload of numbers(1, 1001)) outbox.push('many', payload, undefined, 0)
    expect(drain(outbox)).toEqual(['a', ...numbers(3, 1001)])
    outbox.connected = true
    for (const payload of ['1', '2', '3']) outbox.push('many', payload, undefined, 0)
    for (const payload of ['a', 'b']) outbox.push('one', payload, undefined, 0)
    expect(drain(outbox)).toEqual(['1', 'a', '2', 'b', '3'])
  })
})

describe('the inbound queue', () => {
  const message = (topic: string): Message => ({
    topic,
    payload: Buffer.from('x'),
    retain: false,
    dup: false,
    qos: 1,
    receivedAt: 0,
    connection: 1,
  })

  test('delivers commands in order, as long as there is room, and then makes the broker wait', async () => {
    const delivered: string[] = []
    /** The number of waiting answers. New commands must wait while it is 1,000 or more. */
    const answers = { waiting: 998, bytes: 0 }
    let drained = 0
    const deliver = ({ topic }: Message) => {
      answers.waiting += 1
      delivered.push(topic)
    }
    const onDrained = () => {
      drained += 1
    }
    const intake = new InboundQueue(answers, deliver, onDrained, { messages: 3, bytes: 100 })
    for (let i = 0; i < 4; i += 1) expect(intake.take(message(String(i)))).toBe(true)
    expect(delivered).toEqual(['0', '1'])
    expect(intake.isFull).toBe(false)
    intake.take(message('4'))
    expect(intake.isFull).toBe(true)
    intake.resume()
    expect(drained).toBe(0)
    answers.waiting = 999
    intake.resume()
    await until('the next', () => delivered.length === 3)
    expect(intake.isFull).toBe(false)
    expect(drained).toBe(1)
    answers.waiting = 900
    intake.resume()
    await until('all', () => delivered.length === 5)
    expect(delivered).toEqual(['0', '1', '2', '3', '4'])
    intake.take(message('5'))
    expect(delivered.at(-1)).toBe('5')
  })

  test('drops and counts messages only far above the limit at which the broker should have waited', () => {
    const ignore = () => undefined
    const answers = { waiting: 0, bytes: 4 * 1024 * 1024 }
    const intake = new InboundQueue(answers, ignore, ignore, { messages: 3, bytes: 100 })
    const taken = Array.from({ length: 20 }, (_, i) => intake.take(message(String(i))))
    expect(taken.filter(Boolean)).toHaveLength(15)
    expect(intake.dropped).toBe(5)
  })

  test('counts the bytes of topics, response topics and correlation data too, until it has delivered them', async () => {
    const text = 'x'.repeat(99)
    const { topic, ...empty } = { ...message(''), payload: Buffer.of() }
    const large = [
      { ...empty, topic: text },
      { ...empty, topic, responseTopic: text },
      { ...empty, topic, correlationData: Buffer.from(text) },
    ]
    for (const one of large) {
      const answers = { waiting: 1_000, bytes: 0 }
      const drained = Promise.withResolvers<void>()
      const intake = new InboundQueue(answers, () => undefined, drained.resolve, { messages: 10, bytes: 100 })
      intake.take(one)
      expect(intake.isFull).toBe(false)
      intake.take(message('y'))
      expect(intake.isFull).toBe(true)
      answers.waiting = 0
      intake.resume()
      await drained.promise
      for (let i = 0; i < 2; i += 1) {
        answers.waiting = 1_000
        intake.take(one)
        expect(intake.isFull).toBe(i === 1)
      }
    }
  })
})

describe('the delays between connections', () => {
  const closed = { code: 'closed', detail: '' } as const
  const reset = { code: 'reset', detail: '' } as const
  const lived = (livedMs: number, explained = false, protocol: Protocol = '3.1.1') => ({ livedMs, explained, protocol })

  test('grow while there is no broker, and start small after a connection', () => {
    const pacing = new Pacing(() => 1)
    const down = { code: 'unreachable', detail: '' } as const
    expect([1, 2, 3, 4, 5, 6, 7].map(() => pacing.after(down, undefined))).toEqual([
      1000, 2000, 4000, 8000, 16_000, 30_000, 30_000,
    ])
    expect(pacing.after(reset, lived(10_000))).toBe(1000)
  })

  test('grow when every connection ends soon, and stay long while the broker closes connections', () => {
    const pacing = new Pacing(() => 1)
    expect([1, 2, 3, 4].map(() => pacing.after(closed, lived(500)))).toEqual([1000, 1000, 1000, 1000])
    expect(pacing.suspicious).toBe(false)
    expect(pacing.after(closed, lived(500))).toBe(2000)
    expect(pacing.suspicious).toBe(true)
    expect([1, 2, 3, 4].map(() => pacing.after(closed, lived(30_000)))).toEqual([4000, 8000, 10_000, 10_000])
    expect(pacing.after(reset, lived(30_000))).toBe(1000)
  })
  test('treat a connection that the broker closes after five seconds as steady if the broker reports takeovers', () => {
    const pacing = new Pacing(() => 1)
    const ends = Array.from({ length: 10 }, () => pacing.after(closed, lived(5000, false, '5')))
    expect(ends).toEqual(ends.map(() => 1000))
    for (let i = 0; i < 4; i += 1) pacing.after(closed, lived(4999, false, '5'))
    expect(pacing.after(closed, lived(4999, false, '5'))).toBe(2000)
  })

  test('stay small after connections whose end is explained', () => {
    const pacing = new Pacing(() => 1)
    expect([1, 2, 3, 4].map(() => pacing.after(closed, lived(500)))).toEqual([1000, 1000, 1000, 1000])
    expect(pacing.after(closed, lived(500, true))).toBe(1000)
    expect([1, 2, 3, 4].map(() => pacing.after(closed, lived(500)))).toEqual([1000, 1000, 1000, 1000])
    expect(pacing.after(closed, lived(500))).toBe(2000)
    expect(pacing.after(closed, lived(500, true))).toBe(1000)
  })
})

describe('topics', () => {
  test.each([
    ['#', 'a/b', true],
    ['a/+', 'a/b', true],
    ['a/+', 'a/b/c', false],
    ['a/+', 'a', false],
    ['a/#', 'a', true],
    ['a/#', 'a/b/c', true],
    ['+/b', '/b', true],
    ['#', '$SYS/x', false],
    ['+/x', '$SYS/x', false],
    ['$SYS/#', '$SYS/x', true],
    ['a/b', 'a/b', true],
    ['a/b', 'a/c', false],
  ])('%s and %s: %s', (filter, topic, matches) => {
    expect(topicMatcher([filter])(topic)).toBe(matches)
  })

  test('explains an error in a filter', () => {
    expect(topicFault('b/app/x')).toBeUndefined()
    for (const topic of ['', 'a/#', 'a+', 'a\0', `a/\ud800`, 'ä'.repeat(32_768)])
      expect(topicFault(topic)).toBeTypeOf('string')
  })
})
