import { expect, test } from 'vitest'
import { hold as connect, emulate } from '../../hub/support.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { until } from '../../support/until.ts'

/** Starts a hub and its client, whose key is in a file that the test can change. */
async function hold(clock: FakeClock, keys: Readonly<Record<string, readonly string[]>> = { new: ['hub.app'] }) {
  const emulated = await emulate({ keys })
  const file = { key: 'old', reads: 0, renew: () => renewKey() }
  let used = 'old'
  const renewKey = () => {
    file.reads += 1
    const other = file.key !== used
    used = file.key
    return other
  }
  const { hub } = connect(emulated.url, { apiKey: () => used, renewKey, realtime: false }, { clock })
  return { hub, file, emulated }
}

test('a refused key is read again before the next attempt, and a new one is tried', async () => {
  const clock = new FakeClock()
  const { hub, file } = await hold(clock)
  await until('the refusal', () => hub.status.reason === 'unauthorized')
  await until('the wait', () => clock.waits.includes(60_000))
  expect(file.reads).toBe(1)
  file.key = 'new'
  await clock.advance(60_000)
  await until('online', () => hub.status.online)
  expect(file.reads).toBe(2)
})

test('a key that arrives while the previous one is being checked is used', async () => {
  const clock = new FakeClock()
  const { hub, file, emulated } = await hold(clock, { old: ['hub.app.readonly'], new: ['hub.app'] })
  emulated.behave('slow-headers', { operation: 'getSessionMe', ms: 200, times: 1 })
  await until('the question', () => emulated.requests.some(({ operation }) => operation === 'getSessionMe'))
  file.key = 'new'
  file.renew()
  hub.renewed()
  await until('online', () => hub.status.online)
  expect(hub.status.scopes).toEqual(['hub.app'])
})

test('a hub that asks for fewer requests while its new key is read stays online', async () => {
  const clock = new FakeClock()
  const { hub, file, emulated } = await hold(clock, { old: ['hub.app'] })
  await until('online', () => hub.status.online)
  const said: boolean[] = []
  hub.subscribe(({ online }) => said.push(online))
  emulated.setKeys({ new: ['hub.app.readonly'] })
  emulated.behave('answer-status', { operation: 'getSessionMe', status: 429, times: 1 })
  file.key = 'new'
  /** Advances the clock only if no request is pending, because the same clock times out requests. */
  const advance = async () => {
    if (emulated.requests.every(({ status }) => status !== undefined)) await clock.advance(200)
  }
  await until('the refusal', async () => {
    await advance()
    return emulated.requests.some(({ operation, status }) => operation === 'getSessionMe' && status === 429)
  })
  await until('the new rights', async () => {
    await advance()
    return hub.status.scopes?.includes('hub.app.readonly')
  })
  expect(said).not.toContain(false)
})
