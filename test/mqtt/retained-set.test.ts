/** Tests single rules of `Retained`; `bookkeeping.test.ts` tests its invariants. */
import { beforeEach, describe, expect, test } from 'vitest'
import { type Block, type Entry, type Order, Retained } from '../../src/mqtt/retained.ts'

let order: Order
let set: Retained
beforeEach(() => {
  order = { next: 0 }
  set = new Retained(order)
})
const all = () => true
const none = () => false

function send(retained = set): Entry {
  const entry = retained.peek()
  if (entry === undefined) throw new Error('there is nothing to send')
  retained.take(entry)
  return entry
}

function flush(retained = set): string[] {
  const sent: string[] = []
  for (let entry = retained.peek(); entry !== undefined; entry = retained.peek()) {
    sent.push(`${entry.topic}=${retained.take(entry)}`)
    retained.acked(entry)
  }
  return sent
}

/** Simulates a read-back that finds these messages. */
function holding(topics: Readonly<Record<string, string>>): void {
  for (const [topic, payload] of Object.entries(topics)) set.hold(topic, payload)
  set.settle(all)
  flush()
}

function block(topic: string, why: Block): boolean {
  const entry = send()
  expect(entry.topic).toBe(topic)
  return set.refused(entry, why)
}

function unowned(): string[] {
  const found: string[] = []
  set.sweep((topic, payload) => {
    found.push(`${topic}=${payload}`)
    return false
  })
  return found
}

describe('a message that another connection of this process publishes', () => {
  test('is not sent, before and after the broker has it, and is always recognised as an own message', () => {
    holding({ a: '1' })
    const isThere = set.expect('a', '2')
    expect([set.mayBeOwn('a', '1'), set.mayBeOwn('a', '2'), set.mayBeOwn('a', '3')]).toEqual([true, true, false])
    expect(flush()).toEqual([])
    isThere()
    set.expect('b', '1')()
    set.expect('a', null)()
    expect([flush(), set.concerns('a'), set.concerns('b')]).toEqual([[], false, true])
    set.expect('never held', null)()
    expect(set.concerns('never held')).toBe(false)
  })

  test('is sent if the read-back shows that the broker lacks it, or holds another payload', () => {
    holding({ a: '1', b: '1', c: '1' })
    for (const topic of ['a', 'b', 'c']) set.expect(topic, '2')()
    set.changedByOthers('c', 'x')
    set.refresh('c')
    expect(flush()).toEqual(['c=2'])
    set.forget()
    set.found('b', 'x')
    set.found('c', '2')
    set.settle(all)
    expect(flush()).toEqual(['a=2', 'b=2'])
  })

  test('is sent if the broker has lost it with the connection', () => {
    holding({ a: '1' })
    const isThere = set.expect('a', '2')
    set.forget()
    isThere()
    set.settle(all)
    expect(flush()).toEqual(['a=2'])
  })

  test('finally replaces an older message that was already in flight', () => {
    holding({ a: '1' })
    set.refresh('a')
    const old = send()
    set.expect('a', '2')()
    set.acked(old)
    expect(flush()).toEqual(['a=2'])
  })
})

describe('a held message', () => {
  test('is sent when it changes, once and with its current payload', () => {
    expect([set.hold('a', '1'), set.hold('a', '1'), set.hold('a', '2')]).toEqual([true, false, false])
    expect(set.waiting).toBe(1)
    expect(set.peek()).toMatchObject({ kind: 'retained', topic: 'a', wanted: '2', seq: 0 })
    expect(flush()).toEqual(['a=2'])
    expect([set.hold('a', '2'), set.hold('a', '3')]).toEqual([false, true])
    expect(set.peek()?.seq).toBe(1)
    expect(order.next).toBe(2)
    expect(flush()).toEqual(['a=3'])
  })

  test('is not kept if the broker has it and it can be rendered again, and is sent again with its current payload', () => {
    let now = 'a large one'
    set.hold('a', now, () => now)
    const entry = send()
    expect(entry.text).toBe('a large one')
    set.acked(entry)
    expect(JSON.stringify(entry)).not.toContain('large')
    // The set recognises the payload in a read-back, even on a different connection.
    expect(set.mayBeOwn('a', 'a large one')).toBe(true)
    set.forget()
    set.found('a', 'a large one')
    set.settle(all)
    expect(flush()).toEqual([])
    // If the broker has lost the payload, the set sends the current one.
    now = 'another one'
    set.forget()
    set.settle(all)
    expect(flush()).toEqual(['a=another one'])
    expect(set.hold('a', 'another one', () => now)).toBe(false)
    set.refresh('a')
    expect(flush()).toEqual(['a=another one'])
    expect(set.hold('a', null)).toBe(true)
    expect(flush()).toEqual(['a=null'])
  })

  test('that can be rendered again is cleared when there is nothing to render', () => {
    set.hold('a', 'a large one', () => undefined)
    flush()
    set.forget()
    set.found('a', 'of somebody else')
    set.settle(all)
    expect(flush()).toEqual(['a=null'])
  })

  test('is recognised even if the broker had too many messages to keep', () => {
    set.found('a', 'x'.repeat(64 * 1024 * 1024))
    for (const topic of ['b', 'c']) set.found(topic, `of ${topic}`)
    expect(unowned().slice(1)).toEqual(['b=', 'c='])
    set.settle(all)
    expect(set.hold('b', 'of b')).toBe(false)
    expect(set.hold('c', 'of b')).toBe(true)
  })

  test('is forgotten with its topic when it is cleared', () => {
    holding({ a: '1' })
    expect(set.concerns('a')).toBe(true)
    expect(set.hold('a', null)).toBe(true)
    expect(flush()).toEqual(['a=null'])
    expect(set.concerns('a')).toBe(false)
    expect(set.hold('a', null)).toBe(false)
  })

  test('is cleared on the broker unless the broker is known to hold nothing', () => {
    expect(set.hold('before', null)).toBe(true)
    set.settle((topic) => topic === 'known')
    expect([set.hold('known', null), set.hold('unknown', null)]).toEqual([false, true])
    expect(set.concerns('known')).toBe(false)
    set.forget()
    expect(set.hold('known', null)).toBe(true)
    expect(flush()).toEqual(['before=null', 'unknown=null', 'known=null'])
  })

  test('is cleared once on each connection if the content of the broker is unknown', () => {
    set.settle(none)
    const rounds = () =>
      [1, 2, 3].map(() => {
        set.hold('a', null)
        return flush()
      })
    expect(rounds()).toEqual([['a=null'], [], []])
    set.changedByOthers('a', 'x')
    expect(rounds()).toEqual([['a=null'], [], []])
    set.hold('a', '1')
    expect(flush()).toEqual(['a=1'])
    expect(rounds()).toEqual([['a=null'], [], []])
    set.forget()
    set.settle(none)
    expect(rounds()).toEqual([['a=null'], [], []])
  })

  test('is cleared each time if it is a command, and then not remembered, because clients can use any number of topics', () => {
    set = new Retained(order, undefined, undefined, undefined, (topic) => topic === 'command')
    set.settle(none)
    for (let i = 0; i < 2; i += 1) {
      expect(set.hold('command', null)).toBe(true)
      expect(flush()).toEqual(['command=null'])
    }
  })

  test('is sent again on request, unless its topic is cleared', () => {
    holding({ a: '1' })
    for (const topic of ['a', 'a', 'unknown']) set.refresh(topic)
    expect(flush()).toEqual(['a=1'])
    set.hold('a', null)
    const entry = send()
    set.refresh('a')
    set.acked(entry)
    expect(flush()).toEqual([])
  })
})

describe('a new connection', () => {
  test('clears what was found, whatever happened to it before the read-back ended', () => {
    holding({ a: '1' })
    set.forget()
    for (const topic of ['a', 'b']) set.found(topic, '1')
    set.refresh('a')
    set.hold('b', '2')
    for (const topic of ['a', 'b']) set.hold(topic, null)
    set.settle(all)
    expect(flush().sort()).toEqual(['a=null', 'b=null'])
  })

  test('does not send waiting messages that the read-back finds, until they change', () => {
    set.hold('a', '1')
    set.found('a', '1')
    set.settle(all)
    expect([set.waiting, set.awaiting]).toEqual([0, 0])
    expect(set.hold('a', '2')).toBe(true)
  })

  test('keeps the order of waiting and lost messages; messages that must be repeated follow', () => {
    holding({ held: '1' })
    for (const topic of ['a', 'b']) set.hold(topic, '1')
    const lost = send()
    set.hold('c', '1')
    set.lost(lost)
    set.forget()
    set.settle(none)
    expect(flush()).toEqual(['a=1', 'b=1', 'c=1', 'held=1'])
  })

  test('sends first, in order, and counts only messages that delay online', () => {
    set = new Retained(order, (topic) => topic.startsWith('gate'))
    for (const topic of ['x1', 'gate1', 'x2', 'gate2']) set.hold(topic, '1')
    set.settle(all)
    expect(set.awaiting).toBe(2)
    set.acked(send())
    expect(set.awaiting).toBe(1)
    expect(flush()).toEqual(['gate2=1', 'x1=1', 'x2=1'])
    expect(set.awaiting).toBe(0)
    set.hold('gate1', '2')
    expect(flush()).toEqual(['gate1=2'])
    expect(set.awaiting).toBe(0)
  })

  test('delays online for the latest value of a waiting message, not for the one in flight', () => {
    set.hold('a', '1')
    set.settle(all)
    set.hold('a', '2')
    expect(set.awaiting).toBe(1)
    send()
    set.hold('a', '3')
    expect(set.awaiting).toBe(0)
  })
})

describe('an unowned message', () => {
  test('is offered to a sweep, which clears the messages that it accepts', () => {
    for (const topic of ['a', 'b', 'c']) set.found(topic, `of ${topic}`)
    set.settle(all)
    expect(unowned()).toEqual(['a=of a', 'b=of b', 'c=of c'])
    expect(set.concerns('a')).toBe(true)
    expect(set.sweep((topic) => topic !== 'b')).toBe(2)
    expect(flush()).toEqual(['a=null', 'c=null'])
    expect(unowned()).toEqual(['b=of b'])
    expect(set.concerns('a')).toBe(false)
  })

  test('is forgotten with the connection, and when it is cleared', () => {
    set.found('a', 'theirs')
    set.changedByOthers('b', 'live')
    set.settle(all)
    expect(unowned()).toEqual(['a=theirs', 'b=live'])
    set.changedByOthers('a', '')
    expect(unowned()).toEqual(['b=live'])
    set.forget()
    expect(unowned()).toEqual([])
  })
})

describe('a topic that another bridge takes over', () => {
  const give = () => set.release((topic) => topic === 'a')

  test('is no longer sent, delays nothing, and counts as found', () => {
    holding({ a: '1', b: '1' })
    set.forget()
    set.settle(none)
    expect(set.awaiting).toBe(2)
    give()
    expect(set.awaiting).toBe(1)
    expect(flush()).toEqual(['b=1'])
    expect([unowned(), set.concerns('a'), set.concerns('b')]).toEqual([[], false, true])
    holding({ a: '1' })
    set.hold('a', '2')
    give()
    expect(flush()).toEqual([])
    expect(unowned()).toEqual(['a=1'])
  })

  test('is sent again when it is held again, unless the broker has the same payload', () => {
    holding({ a: '1' })
    give()
    expect(set.hold('a', '1')).toBe(false)
    give()
    expect(set.hold('a', '2')).toBe(true)
    expect(flush()).toEqual(['a=2'])
    set.hold('a', 'a large one', () => 'a large one')
    flush()
    give()
    expect(unowned()).toEqual(['a='])
    expect(set.hold('a', 'a large one', () => 'a large one')).toBe(false)
  })

  test.each([
    ['acknowledged', (entry: Entry) => set.acked(entry)],
    ['refused', (entry: Entry) => expect(set.refused(entry, 'denied')).toBe(false)],
    ['lost', (entry: Entry) => set.lost(entry)],
    ['put back', (entry: Entry) => set.putBack(entry)],
  ])('may still be in flight, without any effect when it is %s', (_, end) => {
    set.settle(all)
    set.hold('a', '1')
    const entry = send()
    give()
    expect(unowned()).toEqual(['a=1'])
    end(entry)
    expect([unowned(), set.blocked, set.waiting, set.peek()]).toEqual([['a=1'], 0, 0, undefined])
    expect(set.hold('a', '1')).toBe(false)
  })

  test('is no longer blocked, and is not found if it was cleared', () => {
    set.settle(all)
    set.hold('a', '1')
    block('a', 'denied')
    give()
    expect([set.blocked, unowned(), set.concerns('a')]).toEqual([0, [], false])
    holding({ a: '1' })
    set.hold('a', null)
    send()
    give()
    expect(unowned()).toEqual([])
  })
})

describe('a message of the broker', () => {
  test('is an own one if it equals the wanted, the sent or the held payload', () => {
    holding({ a: '1' })
    set.hold('a', '2')
    send()
    set.hold('a', '3')
    expect(['1', '2', '3', '4', ''].map((text) => set.mayBeOwn('a', text))).toEqual([true, true, true, false, false])
    set.hold('a', null)
    expect(set.mayBeOwn('a', '')).toBe(true)
  })

  test('is one of other clients if its topic is not held, unless it clears an empty topic', () => {
    set.found('theirs', 'x')
    set.settle(all)
    expect([set.mayBeOwn('new', 'x'), set.mayBeOwn('new', '')]).toEqual([false, true])
    expect([set.mayBeOwn('theirs', 'x'), set.mayBeOwn('theirs', '')]).toEqual([false, false])
  })

  test('of other clients is repaired on request only, and cleared in any case', () => {
    holding({ a: '1', b: '1' })
    set.changedByOthers('a', '')
    set.changedByOthers('b', 'forged')
    expect([set.hold('a', '1'), set.hold('b', '1'), set.peek()]).toEqual([false, false, undefined])
    expect(unowned()).toEqual([])
    set.refresh('a')
    expect(flush()).toEqual(['a=1'])
    expect(set.hold('b', null)).toBe(true)
    set.changedByOthers('a', '')
    expect(set.hold('a', null)).toBe(false)
    expect(set.concerns('a')).toBe(false)
  })
})

describe('a topic that the broker does not accept', () => {
  beforeEach(() => {
    set.hold('a', '1')
    set.settle(none)
  })

  /** Whether a new payload or a new connection lifts a block, and what is sent when a kind of block is retried. */
  const BLOCKS = [
    { why: 'denied', byPayload: true, byConnection: true, quarantined: [], tooLarge: [] },
    { why: 'too_large', byPayload: true, byConnection: true, quarantined: [], tooLarge: ['a=1'] },
    { why: 'quarantined', byPayload: true, byConnection: false, quarantined: ['a=1'], tooLarge: [] },
    { why: 'invalid', byPayload: false, byConnection: false, quarantined: [], tooLarge: [] },
  ] as const

  test.each(BLOCKS)('is not sent while it is $why', ({ why }) => {
    expect(set.awaiting).toBe(1)
    expect(block('a', why)).toBe(true)
    expect([set.peek(), set.waiting, set.awaiting, set.blocked]).toEqual([undefined, 0, 0, 1])
    expect(set.hold('a', '1')).toBe(false)
    expect(set.hasQuarantined).toBe(why === 'quarantined')
  })

  test.each(BLOCKS)('that is $why: another payload lifts the block: $byPayload', ({ why, byPayload }) => {
    const entry = send()
    entry.losses = 3
    set.refused(entry, why)
    expect(set.hold('a', '2')).toBe(byPayload)
    // A topic with losses is first tried on a separate connection, regardless of its payload.
    expect(entry.losses).toBe(3)
    expect(set.blocked).toBe(byPayload ? 0 : 1)
    expect(flush()).toEqual(byPayload ? ['a=2'] : [])
  })

  test.each(BLOCKS)('that is $why: a new connection lifts the block: $byConnection', ({ why, byConnection }) => {
    block('a', why)
    set.forget()
    set.settle(none)
    expect(set.blocked).toBe(byConnection ? 0 : 1)
    expect(flush()).toEqual(byConnection ? ['a=1'] : [])
  })

  test.each(BLOCKS)('that is $why is tried again at its time', ({ why, quarantined, tooLarge }) => {
    block('a', why)
    set.retry('quarantined', none)
    expect(flush()).toEqual([])
    set.retry('quarantined', ({ topic }) => topic === 'a')
    expect(flush()).toEqual(quarantined)
    set.retry('too_large')
    expect(flush()).toEqual(tooLarge)
    expect(set.blocked).toBe(quarantined.length + tooLarge.length === 0 ? 1 : 0)
    expect(set.hasQuarantined).toBe(false)
  })

  test('is reported once for each reason, and again after it was accepted', () => {
    const again = (payload: string, why: Block) => {
      set.hold('a', payload)
      return block('a', why)
    }
    expect(block('a', 'denied')).toBe(true)
    expect([again('2', 'denied'), again('3', 'too_large'), again('4', 'too_large')]).toEqual([false, true, false])
    set.hold('a', '5')
    flush()
    expect(again('6', 'too_large')).toBe(true)
  })

  test('leaves no older payload if it is too large and its topic must not be outdated', () => {
    set = new Retained(order, all, undefined, (topic) => topic === 'a')
    holding({ a: '1', b: '1' })
    set.hold('a', '2')
    set.hold('b', '2')
    expect([block('a', 'too_large'), block('b', 'too_large')]).toEqual([true, true])
    expect([flush(), set.blocked]).toEqual([['a=null'], 2])
    expect([set.hold('a', '2'), flush()]).toEqual([false, []])
    set.retry('too_large')
    expect([block('a', 'too_large'), block('b', 'too_large'), flush()]).toEqual([false, false, []])
    set.hold('a', '1')
    expect([flush(), set.blocked]).toEqual([['a=1'], 1])
    // If the broker also denies the clearing, the set does not repeat it endlessly.
    set.hold('a', '3')
    block('a', 'too_large')
    block('a', 'denied')
    expect([flush(), set.blocked]).toEqual([[], 2])
  })

  test('counts once, however often it is refused', () => {
    const entry = send()
    set.refused(entry, 'denied')
    set.refused(entry, 'quarantined')
    expect(set.blocked).toBe(1)
    set.hold('b', '1')
    block('b', 'denied')
    expect(set.blocked).toBe(2)
    expect(set.hasQuarantined).toBe(true)
  })

  test.each([
    ['denied', ['a=2'], 0],
    ['invalid', [], 1],
  ] as const)('does not affect a newer payload, unless it is %s', (why, sent, blocked) => {
    const entry = send()
    set.hold('a', '2')
    set.refused(entry, why)
    expect([set.waiting, set.blocked]).toEqual([sent.length, blocked])
    expect(flush()).toEqual(sent)
  })

  test('is not forgotten, whether it is held or cleared', () => {
    set.settle(all)
    block('a', 'denied')
    holding({ b: '1' })
    set.hold('b', null)
    block('b', 'denied')
    expect([set.concerns('a'), set.concerns('b')]).toEqual([true, true])
  })

  test('that was not sent stays blocked', () => {
    const entry = set.peek()
    if (entry !== undefined) set.refused(entry, 'denied')
    expect([set.peek(), set.blocked]).toEqual([undefined, 1])
  })
})
