/** Tests which payloads the link redacts, and which payloads observers receive. */
import { expect, test } from 'vitest'
import { Observer } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { portOf, settled, startAedes, startLink } from './support.ts'

const KEY = 'key-of-the-hub'
const redact = (payload: string) => payload.replaceAll(KEY, '***')
const said = (name: string) => `${name}: no ${KEY}`

test('a key is in no payload that is sent or shown, nor in the replacement of a refused one', async () => {
  await using broker = await startAedes()
  await using seen = await Observer.on(portOf(broker.url))
  const shown: (string | null)[] = []
  const observer = {
    held: (topic: string, payload: string | null) => shown.push(payload && `${topic}=${payload}`),
    sent: (topic: string, payload: string) => shown.push(`${topic}=${payload}`),
    released: () => shown.push('released'),
  }
  await using bridge = startLink({ url: broker.url, redact, handlers: { observer }, maximumPacketSize: 200 })
  const { link } = bridge
  link.hold('b/app/1', said('state'))
  link.hold('b/app/2', said('large'), () => said('again'))
  link.send('b/event', said('event'))
  // The link does not pass answers to observers, because the code that sends an answer does.
  link.send('b/answer', said('answer'), { isAnswer: true })
  const ifRefused = (why: string) => ({ topic: 'b/answer', payload: said(why) })
  link.send('b/answer', 'x'.repeat(300), { isAnswer: true, ifRefused })
  await settled(bridge)
  link.refresh(['b/app/2'])
  await settled(bridge)
  link.hold('b/app/1', null)
  link.release((topic) => topic === 'b/app/2')
  await until('all messages', () => seen.last('b/app/1') === '' && seen.texts('b/answer').length === 2)
  expect(seen.texts('b/app/1')).toEqual(['state: no ***', ''])
  await until('the new payload', () => seen.last('b/app/2') === 'again: no ***')
  expect(seen.texts('b/event')).toEqual(['event: no ***'])
  expect(seen.texts('b/answer')).toEqual(['answer: no ***', 'too_large: no ***'])
  expect(seen.seen.filter(({ text }) => text.includes(KEY))).toEqual([])
  expect(shown).toEqual(['b/app/1=state: no ***', 'b/app/2=large: no ***', 'b/event=event: no ***', null, 'released'])
})

test('a payload that the broker has without the key is not sent again, whether its text or its digest is compared', async () => {
  await using broker = await startAedes()
  const fill = ({ link }: ReturnType<typeof startLink>) => {
    link.hold('b/app/1', said('text'))
    link.hold('b/app/2', said('digest'), () => said('digest'))
  }
  await using first = startLink({ url: broker.url, redact })
  fill(first)
  await settled(first)
  // The broker holds both payloads. The link keeps the first payload, and only a digest of the second one.
  first.link.startOver()
  await settled(first, 2)
  // The link has published `online` twice, and the other messages once.
  expect(first.link.status().publishes).toBe(4)
  await first.link.close()
  await using second = startLink({ url: broker.url, redact })
  fill(second)
  await settled(second)
  fill(second)
  expect(second.link.status()).toMatchObject({ queued: 0, unacknowledged: 0, publishes: 1 })
})

test('a text that is rendered again is redacted before its digest is taken', async () => {
  await using broker = await startAedes()
  await using other = await Observer.on(portOf(broker.url))
  await using bridge = startLink({ url: broker.url, redact, watchedFilters: ['b/app/+'] })
  bridge.link.hold('b/app/1', said('digest'), () => said('digest'))
  await settled(bridge)
  await other.publish('b/app/1', 'forged', { retain: true })
  await until('the other', () => bridge.touched.length === 1)
  bridge.link.refresh(['b/app/1'])
  await until('the right one', () => other.last('b/app/1') === 'digest: no ***')
  await settled(bridge)
  const { publishes } = bridge.link.status()
  bridge.link.hold('b/app/1', said('digest'), () => said('digest'))
  expect(bridge.link.status()).toMatchObject({ queued: 0, unacknowledged: 0, publishes })
  // This message is equal to the link's own publish, so the link must not report it.
  await other.publish('b/app/1', 'digest: no ***', { retain: true })
  await other.publish('b/app/1', 'forged again', { retain: true })
  await until('the second', () => bridge.touched.length === 2)
  expect(bridge.touched.map(({ payload }) => payload)).toEqual(['forged', 'forged again'])
})
