import { describe, expect, test } from 'vitest'
import { Replay, replayKey } from '../../src/bridge/replay.ts'
import type { Outcome } from '../../src/contract/answer.ts'
import { CommandError } from '../../src/contract/errors.ts'
import type { Message } from '../../src/mqtt/types.ts'
import { FakeClock } from '../support/fake-clock.ts'

const MESSAGE: Message = {
  topic: 't',
  payload: Buffer.from('p'),
  retain: false,
  dup: false,
  qos: 1,
  receivedAt: 0,
  connection: 1,
}
const turn = () => new Promise((resolve) => setImmediate(resolve))
const key = (message: Partial<Message> = {}, transaction: string | number | null = null) =>
  replayKey({ ...MESSAGE, ...message }, transaction)
const mark = (text: string) => ({ correlationData: Buffer.from(text) })

describe('a command', () => {
  test('with a transaction is identified by topic and transaction, whatever else it contains', () => {
    const { text, consult } = key({}, 7)
    expect(consult).toBe(true)
    expect(key({ payload: Buffer.from('q'), dup: true, ...mark('x') }, 7)).toEqual({ text, consult })
    for (const other of [key({}, 8), key({}, '7'), key({ topic: 'u' }, 7)]) expect(other.text).not.toBe(text)
  })

  test('without a transaction is identified by its correlation data', () => {
    const { text, consult } = key(mark('x'))
    expect(consult).toBe(true)
    expect(key({ payload: Buffer.from('q'), ...mark('x') })).toEqual({ text, consult })
    for (const other of [key(mark('y')), key({ topic: 'u', ...mark('x') }), key({}, 'x')])
      expect(other.text).not.toBe(text)
    expect(key({ correlationData: Buffer.from([0xfe]) }).text).not.toBe(
      key({ correlationData: Buffer.from([0xff]) }).text,
    )
  })

  test('without a transaction and correlation data is identified by its bytes, and only if the broker marks it as redelivered', () => {
    const { text, consult } = key()
    expect(consult).toBe(false)
    expect(key({ dup: true })).toEqual({ text, consult: true })
    for (const other of [key({ payload: Buffer.from('q') }), key({ topic: 'u' }), key(mark('p')), key({}, 'p')])
      expect(other.text).not.toBe(text)
  })

  test('needs little memory, whatever was sent', () => {
    for (const { text } of [key({ payload: Buffer.alloc(65_536) }), key(mark('x'.repeat(60_000))), key({}, 'x')])
      expect(text.length).toBeLessThanOrEqual(128)
  })

  test('with a long transaction is distinguished from those with another one', () => {
    const long = (end: string) => 'x'.repeat(1000) + end
    expect(key(mark(long('a')))).toEqual(key(mark(long('a'))))
    for (const other of [key(mark(long('b'))), key(mark('x')), key({}, long('a'))])
      expect(other.text).not.toBe(key(mark(long('a'))).text)
  })

  test('is not confused with one whose topic and transaction are split elsewhere', () => {
    expect(key({ topic: 'ab' }, 'c').text).not.toBe(key({ topic: 'a' }, 'bc').text)
  })
})

describe('the memory of answers', () => {
  const done = (json: string): Promise<Outcome> => Promise.resolve({ ok: true, json })
  const MEBIBYTE = 1024 * 1024

  test('holds 20,000 answers, and of those with data the newest eight mebibytes', async () => {
    const replay = new Replay(new FakeClock())
    for (let i = 0; i < 9; i++) replay.remember(`data${i}`, done('x'.repeat(MEBIBYTE / 2)))
    await turn()
    expect([0, 1, 8].map((i) => replay.recall(`data${i}`) !== undefined)).toEqual([false, true, true])
    for (let i = 0; i < 20_000; i++) replay.remember(`k${i}`, done('null'))
    await turn()
    expect([0, 19_999].map((i) => replay.recall(`k${i}`) !== undefined)).toEqual([true, true])
    replay.remember('more', done('null'))
    expect([0, 1].map((i) => replay.recall(`k${i}`) !== undefined)).toEqual([false, true])
  })

  test('does not hold an answer that is larger than its whole limit', async () => {
    const replay = new Replay(new FakeClock())
    replay.remember('small', done('1'))
    replay.remember('large', done('x'.repeat(5 * MEBIBYTE)))
    await turn()
    expect(['small', 'large'].map((name) => replay.recall(name) !== undefined)).toEqual([true, false])
  })

  test('treats a write that failed before it was sent to the hub like a read, which needs no room', async () => {
    const replay = new Replay(new FakeClock())
    const failed = Promise.resolve({ ok: false, error: new CommandError('unknown_app') } as const)
    for (let i = 0; i < 100_000; i++) replay.remember(`refused${i}`, failed, () => false)
    await turn()
    expect(replay.hasRoom).toBe(true)
    expect([0, 99_999].map((i) => replay.recall(`refused${i}`) !== undefined)).toEqual([false, true])
  })

  test('holds a write without its data if that is too large', async () => {
    const replay = new Replay(new FakeClock())
    for (const name of ['a', 'b', 'c']) {
      replay.remember(name, done('x'.repeat(1.5 * MEBIBYTE)), () => true)
      await turn()
    }
    const answers = await Promise.all(['a', 'b', 'c'].map((name) => replay.recall(name)))
    expect(answers.map((one) => one?.ok && one.json.length)).toEqual([1.5 * MEBIBYTE, 1.5 * MEBIBYTE, 'null'.length])
  })

  test('is not changed when an earlier command with the same key ends', async () => {
    const replay = new Replay(new FakeClock())
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    replay.remember('k', promise)
    replay.remember('k', done('null'))
    resolve({ ok: false, error: new CommandError('busy') })
    await turn()
    expect(await replay.recall('k')).toEqual({ ok: true, json: 'null' })
  })

  test('holds an answer as large as the limit, and drops the one that was stored first', async () => {
    const replay = new Replay(new FakeClock())
    replay.remember('largest', done('x'.repeat(4 * MEBIBYTE)))
    await turn()
    expect(replay.recall('largest')).toBeDefined()
    for (const name of ['a', 'b', 'a', 'c']) {
      replay.remember(name, done('x'.repeat(1.5 * MEBIBYTE)))
      await turn()
    }
    expect(['largest', 'a', 'b', 'c'].map((name) => replay.recall(name) !== undefined)).toEqual([
      false,
      true,
      false,
      true,
    ])
  })

  test('holds each answer for five minutes, also if it was stored again', async () => {
    const clock = new FakeClock()
    const replay = new Replay(clock)
    replay.remember('first', done('null'))
    await clock.advance(100_000)
    replay.remember('second', done('null'))
    await clock.advance(100_000)
    replay.remember('first', done('null'))
    await clock.advance(199_999)
    expect(replay.recall('second')).toBeDefined()
    await clock.advance(1)
    expect(replay.recall('second')).toBeUndefined()
    expect(replay.recall('first')).toBeDefined()
  })
})
