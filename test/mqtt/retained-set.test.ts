/** The rules of the retained set one by one; `bookkeeping.test.ts` has what holds whatever happens. */
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

/** Sends the next one, if there is one. */
function send(retained = set): Entry {
  const entry = retained.peek()
  if (entry === undefined) throw new Error('there is nothing to send')
  retained.take(entry)
  return entry
}

/** Sends everything and has it acknowledged. */
function flush(retained = set): string[] {
  const sent: string[] = []
  for (let entry = retained.peek(); entry !== undefined; entry = retained.peek()) {
    sent.push(`${entry.topic}=${retained.take(entry)}`)
    retained.acked(entry)
  }
  return sent
}

/** The broker holds these, and says so. */
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

function unclaimed(): string[] {
  const found: string[] = []
  set.sweep((topic, payload) => {
    found.push(`${topic}=${payload}`)
    return false
  })
  return found
}

describe('what another connection of this process publishes', () => {
  test('is not sent, before and after the broker has it, and is an own message all along', () => {
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

  test('is sent where the broker is found to lack it, or to hold something else', () => {
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

  test('is sent where the broker has lost it with the connection', () => {
    holding({ a: '1' })
    const isThere = set.expect('a', '2')
    set.forget()
    isThere()
    set.settle(all)
    expect(flush()).toEqual(['a=2'])
  })

  test('replaces at the end what was on its way here before', () => {
    holding({ a: '1' })
    set.refresh('a')
    const old = send()
    set.expect('a', '2')()
    set.acked(old)
    expect(flush()).toEqual(['a=2'])
  })
})

describe('what is held', () => {
  test('is sent when it changes, once and as it is by then', () => {
    expect([set.hold('a', '1'), set.hold('a', '1'), set.hold('a', '2')]).toEqual([true, false, false])
    expect(set.waiting).toBe(1)
    expect(set.peek()).toMatchObject({ kind: 'retained', topic: 'a', wanted: '2', seq: 0 })
    expect(flush()).toEqual(['a=2'])
    expect([set.hold('a', '2'), set.hold('a', '3')]).toEqual([false, true])
    expect(set.peek()?.seq).toBe(1)
    expect(order.next).toBe(2)
    expect(flush()).toEqual(['a=3'])
  })

  test('is not kept when the broker has it and it can be had again, and is sent again as it is by then', () => {
    let now = 'a large one'
    set.hold('a', now, () => now)
    const entry = send()
    expect(entry.text).toBe('a large one')
    set.acked(entry)
    expect(JSON.stringify(entry)).not.toContain('large')
    // The broker says that it has it, under another connection too.
    expect(set.mayBeOwn('a', 'a large one')).toBe(true)
    set.forget()
    set.found('a', 'a large one')
    set.settle(all)
    expect(flush()).toEqual([])
    // One that has forgotten it gets it again.
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

  test('that can be had again is cleared when there is nothing more to have', () => {
    set.hold('a', 'a large one', () => undefined)
    flush()
    set.forget()
    set.found('a', 'of somebody else')
    set.settle(all)
    expect(flush()).toEqual(['a=null'])
  })

  test('of which the broker had too much to keep is recognised all the same', () => {
    const large = 'x'.repeat(40 * 1024 * 1024)
    set.found('a', large)
    set.found('b', `${large}b`)
    set.found('c', `${large}c`)
    expect(unclaimed().map((one) => one.length > 10)).toEqual([true, false, false])
    set.settle(all)
    expect(set.hold('b', `${large}b`)).toBe(false)
    expect(set.hold('c', `${large}b`)).toBe(true)
  })

  test('is sent again after what is on its way, and not beside it', () => {
    set.hold('a', '1')
    const entry = send()
    expect(set.hold('a', '2')).toBe(false)
    expect(set.peek()).toBeUndefined()
    set.acked(entry)
    expect(flush()).toEqual(['a=2'])
  })

  test('is not sent when it is again what the broker holds', () => {
    holding({ a: '1' })
    expect([set.hold('a', '2'), set.hold('a', '1')]).toEqual([true, false])
    expect(set.peek()).toBeUndefined()
    expect(set.waiting).toBe(0)
    expect(set.hold('a', '2')).toBe(true)
  })

  test('is forgotten with its topic when it is cleared', () => {
    holding({ a: '1' })
    expect(set.concerns('a')).toBe(true)
    expect(set.hold('a', null)).toBe(true)
    expect(flush()).toEqual(['a=null'])
    expect(set.concerns('a')).toBe(false)
    expect(set.hold('a', null)).toBe(false)
  })

  test('and cleared before it was sent is nothing to send', () => {
    set.settle(all)
    expect([set.hold('a', '1'), set.hold('a', null)]).toEqual([true, false])
    expect(set.peek()).toBeUndefined()
    expect([set.waiting, set.awaiting, set.concerns('a')]).toEqual([0, 0, false])
  })

  test('and cleared while it is on its way is cleared after it', () => {
    set.settle(all)
    set.hold('a', '1')
    const entry = send()
    set.hold('a', null)
    set.acked(entry)
    expect(flush()).toEqual(['a=null'])
  })

  test('is cleared on the broker while it is not known to hold nothing', () => {
    expect(set.hold('before', null)).toBe(true)
    set.settle((topic) => topic === 'known')
    expect([set.hold('known', null), set.hold('unknown', null)]).toEqual([false, true])
    expect(set.concerns('known')).toBe(false)
    set.forget()
    expect(set.hold('known', null)).toBe(true)
    expect(flush()).toEqual(['before=null', 'unknown=null', 'known=null'])
  })

  test('is cleared once on each connection if it is not known what the broker holds there', () => {
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
    set.published('a')
    expect(rounds()).toEqual([['a=null'], [], []])
    set.forget()
    set.settle(none)
    expect(rounds()).toEqual([['a=null'], [], []])
  })

  test('is sent again on request, unless nothing is wanted there', () => {
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
  test('is sent what the broker was not found to hold, and nothing else', () => {
    holding({ a: '1', b: '1', c: '1', d: '1' })
    set.forget()
    set.found('a', '1')
    set.found('b', 'other')
    const before = order.next
    set.settle((topic) => topic !== 'd')
    expect(set.waiting).toBe(3)
    expect(set.peek()?.seq).toBe(before)
    expect(flush()).toEqual(['b=1', 'c=1', 'd=1'])
  })

  test('is sent each topic once, as it is by then', () => {
    holding({ a: '1' })
    set.forget()
    set.settle(none)
    expect(set.hold('a', '2')).toBe(false)
    expect(set.waiting).toBe(1)
    expect(flush()).toEqual(['a=2'])
  })

  test('is sent to clear what it was found to hold, whatever happened to that before its read-back ended', () => {
    holding({ a: '1' })
    set.forget()
    for (const topic of ['a', 'b']) set.found(topic, '1')
    set.refresh('a')
    set.hold('b', '2')
    for (const topic of ['a', 'b']) set.hold(topic, null)
    set.settle(all)
    expect(flush().sort()).toEqual(['a=null', 'b=null'])
  })

  test('ends what waited and turns out to be there: it is sent when it changes', () => {
    set.hold('a', '1')
    set.found('a', '1')
    set.settle(all)
    expect([set.waiting, set.awaiting]).toEqual([0, 0])
    expect(set.hold('a', '2')).toBe(true)
  })

  test('keeps the order of what waited or was lost, and what has to be sent anew comes behind', () => {
    holding({ held: '1' })
    for (const topic of ['a', 'b']) set.hold(topic, '1')
    const lost = send()
    set.hold('c', '1')
    set.lost(lost)
    set.forget()
    set.settle(none)
    expect(flush()).toEqual(['a=1', 'b=1', 'c=1', 'held=1'])
  })

  test('sends first what gates online, each in its order, and counts that alone', () => {
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

  test('waits with online for the latest value of what waits, not of what is on its way', () => {
    set.hold('a', '1')
    set.settle(all)
    set.hold('a', '2')
    expect(set.awaiting).toBe(1)
    send()
    set.hold('a', '3')
    expect(set.awaiting).toBe(0)
  })
})

describe('what nobody claims', () => {
  test('is offered to a sweep, which clears what it takes', () => {
    for (const topic of ['a', 'b', 'c']) set.found(topic, `of ${topic}`)
    set.settle(all)
    expect(unclaimed()).toEqual(['a=of a', 'b=of b', 'c=of c'])
    expect(set.concerns('a')).toBe(true)
    expect(set.sweep((topic) => topic !== 'b')).toBe(2)
    expect(flush()).toEqual(['a=null', 'c=null'])
    expect(unclaimed()).toEqual(['b=of b'])
    expect(set.concerns('a')).toBe(false)
  })

  test('is cleared by who holds nothing there, and taken over by who holds something', () => {
    for (const topic of ['a', 'b']) set.found(topic, 'theirs')
    set.settle(all)
    expect([set.hold('a', null), set.hold('b', 'ours')]).toEqual([true, true])
    expect(flush()).toEqual(['a=null', 'b=ours'])
    expect(unclaimed()).toEqual([])
  })

  test('is forgotten with the connection, and with the one who clears it', () => {
    set.found('a', 'theirs')
    set.changedByOthers('b', 'live')
    set.settle(all)
    expect(unclaimed()).toEqual(['a=theirs', 'b=live'])
    set.changedByOthers('a', '')
    expect(unclaimed()).toEqual(['b=live'])
    set.forget()
    expect(unclaimed()).toEqual([])
  })
})

describe('a topic that another bridge owns from now on', () => {
  const give = () => set.release((topic) => topic === 'a')

  test('is sent no more, delays nothing, and counts as found', () => {
    holding({ a: '1', b: '1' })
    set.forget()
    set.settle(none)
    expect(set.awaiting).toBe(2)
    give()
    expect(set.awaiting).toBe(1)
    expect(flush()).toEqual(['b=1'])
    expect([unclaimed(), set.concerns('a'), set.concerns('b')]).toEqual([[], false, true])
    holding({ a: '1' })
    set.hold('a', '2')
    give()
    expect(flush()).toEqual([])
    expect(unclaimed()).toEqual(['a=1'])
  })

  test('is sent again as soon as it is held again, unless the broker has just that', () => {
    holding({ a: '1' })
    give()
    expect(set.hold('a', '1')).toBe(false)
    give()
    expect(set.hold('a', '2')).toBe(true)
    expect(flush()).toEqual(['a=2'])
    set.hold('a', 'a large one', () => 'a large one')
    flush()
    give()
    expect(unclaimed()).toEqual(['a='])
    expect(set.hold('a', 'a large one', () => 'a large one')).toBe(false)
  })

  test.each([
    ['acknowledged', (entry: Entry) => set.acked(entry)],
    ['refused', (entry: Entry) => expect(set.refused(entry, 'denied')).toBe(false)],
    ['lost', (entry: Entry) => set.lost(entry)],
    ['put back', (entry: Entry) => set.putBack(entry)],
  ])('may still be on its way, which is without consequence when it is %s', (_, end) => {
    set.settle(all)
    set.hold('a', '1')
    const entry = send()
    give()
    expect(unclaimed()).toEqual(['a=1'])
    end(entry)
    expect([unclaimed(), set.blocked, set.waiting, set.peek()]).toEqual([['a=1'], 0, 0, undefined])
    expect(set.hold('a', '1')).toBe(false)
  })

  test('is blocked no more, and is not found where it was cleared', () => {
    set.settle(all)
    set.hold('a', '1')
    block('a', 'denied')
    give()
    expect([set.blocked, unclaimed(), set.concerns('a')]).toEqual([0, [], false])
    holding({ a: '1' })
    set.hold('a', null)
    send()
    give()
    expect(unclaimed()).toEqual([])
  })
})

describe('a message of the broker', () => {
  test('may be an own one where it says what is wanted, on its way, or held', () => {
    holding({ a: '1' })
    set.hold('a', '2')
    send()
    set.hold('a', '3')
    expect(['1', '2', '3', '4', ''].map((text) => set.mayBeOwn('a', text))).toEqual([true, true, true, false, false])
    set.hold('a', null)
    expect(set.mayBeOwn('a', '')).toBe(true)
  })

  test('is one of others on a topic that is not held, unless it clears what was not there', () => {
    set.found('theirs', 'x')
    set.settle(all)
    expect([set.mayBeOwn('new', 'x'), set.mayBeOwn('new', '')]).toEqual([false, true])
    expect([set.mayBeOwn('theirs', 'x'), set.mayBeOwn('theirs', '')]).toEqual([false, false])
  })

  test('of others is put right on request alone, and cleared in any case', () => {
    holding({ a: '1', b: '1' })
    set.changedByOthers('a', '')
    set.changedByOthers('b', 'forged')
    expect([set.hold('a', '1'), set.hold('b', '1'), set.peek()]).toEqual([false, false, undefined])
    expect(unclaimed()).toEqual([])
    set.refresh('a')
    expect(flush()).toEqual(['a=1'])
    expect(set.hold('b', null)).toBe(true)
    set.changedByOthers('a', '')
    expect(set.hold('a', null)).toBe(false)
    expect(set.concerns('a')).toBe(false)
  })
})

describe('a topic that the broker does not take', () => {
  beforeEach(() => {
    set.hold('a', '1')
    set.settle(none)
  })

  test.each(['denied', 'too_large', 'quarantined', 'invalid'] as const)('is not sent while it is %s', (why) => {
    expect(set.awaiting).toBe(1)
    expect(block('a', why)).toBe(true)
    expect([set.peek(), set.waiting, set.awaiting, set.blocked]).toEqual([undefined, 0, 0, 1])
    expect(set.hold('a', '1')).toBe(false)
    expect(set.hasQuarantined).toBe(why === 'quarantined')
  })

  test.each([
    ['denied', true],
    ['too_large', true],
    ['quarantined', true],
    ['invalid', false],
  ] as const)('and is %s: another payload ends that: %s', (why, ends) => {
    const entry = send()
    entry.losses = 3
    set.refused(entry, why)
    expect(set.hold('a', '2')).toBe(ends)
    // Whatever the payload, it is tried alone first.
    expect(entry.losses).toBe(3)
    expect(set.blocked).toBe(ends ? 0 : 1)
    expect(flush()).toEqual(ends ? ['a=2'] : [])
  })

  test.each([
    ['denied', true],
    ['too_large', true],
    ['quarantined', false],
    ['invalid', false],
  ] as const)('and is %s: a new connection ends that: %s', (why, ends) => {
    block('a', why)
    set.forget()
    set.settle(none)
    expect(set.blocked).toBe(ends ? 0 : 1)
    expect(flush()).toEqual(ends ? ['a=1'] : [])
  })

  test.each([
    ['denied', [], []],
    ['too_large', [], ['a=1']],
    ['quarantined', ['a=1'], []],
    ['invalid', [], []],
  ] as const)('and is %s is tried again at its time', (why, quarantined, tooLarge) => {
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

  test('is reported once for each reason, and anew after it was taken', () => {
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

  test('counts once, whatever is said of it', () => {
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
  ] as const)('says nothing of a payload that came meanwhile, unless it is %s', (why, sent, blocked) => {
    const entry = send()
    set.hold('a', '2')
    set.refused(entry, why)
    expect([set.waiting, set.blocked]).toEqual([sent.length, blocked])
    expect(flush()).toEqual(sent)
  })

  test('is not forgotten, whether something is wanted there or nothing', () => {
    set.settle(all)
    block('a', 'denied')
    holding({ b: '1' })
    set.hold('b', null)
    block('b', 'denied')
    expect([set.concerns('a'), set.concerns('b')]).toEqual([true, true])
  })

  test('and was not sent stays blocked', () => {
    const entry = set.peek()
    if (entry !== undefined) set.refused(entry, 'denied')
    expect([set.peek(), set.blocked]).toEqual([undefined, 1])
  })
})
