import { jetstream } from '@nats-io/jetstream'
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import pino from 'pino'
import { expect, test } from 'vitest'
import { NatsStore } from '../../src/cluster/nats.ts'
import { JumpClock } from '../support/jump-clock.ts'
import { natsPath, startNats } from '../support/nats.ts'
import { until } from '../support/until.ts'

const ignore = () => {}
const accepting = (password: string) => [`authorization { user: fleet, password: "${password}" }`]

test.skipIf(natsPath === undefined)(
  'a member reads refused NATS credentials again, logs that and the lost connection once, and reconnects',
  { timeout: 120_000 },
  async () => {
    await using nats = await startNats({ config: accepting('first') })
    let password = 'first'
    let read = password
    let attempts = 0
    const lines: string[] = []
    const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) })
    const login = (renew: boolean) => {
      attempts += 1
      if (renew) read = password
      return { username: 'fleet', password: read }
    }
    const { urls: servers } = nats
    const clock = new JumpClock()
    await using store = new NatsStore({ servers, login, bucket: 'b', quietMs: 5_000, name: 'test', clock, log })
    store.watch(ignore, ignore)
    const isWritten = async (key: string) => (await store.create(key, 'x').catch(() => 0)) > 0
    const writes = (key: string) => until(`a write of ${key}`, () => isWritten(key), 60_000)
    await writes('one')
    const count = (text: string) => lines.filter((line) => line.includes(text)).length
    await nats.node(0).restart(accepting('second'))
    // Wait for several refusals, because the connection survives a single one.
    await until('refusals', () => count('NATS refuses the user name or password') === 1, 60_000)
    const refused = attempts
    await until('more of them', () => attempts >= refused + 3)
    password = 'second'
    // The store reads the login again after at least ten seconds.
    clock.jump(10_000)
    await writes('two')
    for (const text of ['NATS refuses the user name or password', 'connection to NATS lost', 'connected to NATS again'])
      expect({ text, count: count(text) }).toEqual({ text, count: 1 })
    expect(lines.join()).not.toMatch(/"first"|"second"/)
  },
)

test.skipIf(natsPath === undefined)(
  'a member logs once why NATS refuses its writes, because it then serves no hub',
  { timeout: 60_000 },
  async () => {
    await using nats = await startNats()
    const connection = await connect({ servers: [...nats.urls] })
    await new Kvm(jetstream(connection)).create('b', { max_bytes: 500, history: 1 })
    await connection.close()
    const lines: string[] = []
    const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) })
    const clock = new JumpClock()
    await using store = new NatsStore({ servers: nats.urls, bucket: 'b', quietMs: 5_000, name: 'test', clock, log })
    store.watch(ignore, ignore)
    await until('a write', async () => (await store.create('small', 'x').catch(() => 0)) > 0, 30_000)
    for (const key of ['one', 'two'])
      await expect(store.create(key, 'x'.repeat(1_000))).rejects.toThrow('maximum bytes')
    const told = lines.filter((line) => line.includes('maximum bytes'))
    expect(told).toEqual([expect.stringContaining('NATS refuses to write to the bucket of the fleet')])
  },
)
