import { isDeepStrictEqual } from 'node:util'
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LEADER, ownerOf } from '../../../src/cluster/fleet.ts'
import { SESSION, STATE } from '../../../src/web/server/api/protocol.ts'
import { RESTART } from '../../cluster/rollout/rollouts.ts'
import type { RunningBridge } from '../../support/bridge.ts'
import { Fleet } from '../../support/fleet.ts'
import { natsPath, startNats } from '../../support/nats.ts'
import { until } from '../../support/until.ts'
import { addressOf, snapshotOf } from './frames.ts'

const NAMES = ['shard-1', 'shard-2']
const HTTP = { HTTP_ENABLED: 'true', HTTP_PORT: '0' }
const POLL_MS = 20

let shards: Fleet
let own: RunningBridge
let other: RunningBridge
let owner: { readonly authorization: string }
let url: string

const ask = async (path: string) => await (await fetch(`${url}/api/${path}`)).json()
const state = async () => v.parse(STATE, await ask('state'))

beforeAll(async () => {
  shards = await Fleet.build({ hubs: 8, env: HTTP })
  own = shards.begin({ FLEET_SHARD: '1/2' })
  other = shards.begin({ FLEET_SHARD: '2/2' })
  await shards.served(NAMES)
  url = await addressOf(own)
  owner = await own.owner()
})
afterAll(() => shards?.[Symbol.asyncDispose]())

const hubsOf = (name: string) => [...shards.owners()].flatMap(([hub, owner]) => (owner === name ? [hub] : []))

describe('over HTTP, a member of a fleet', () => {
  it('reports its name, which is part of its own topics', async () => {
    expect(v.parse(SESSION, await ask('session'))).toMatchObject({ base_topic: 'hub2mqtt', member: 'shard-1' })
    expect(Object.keys(await state())).toEqual(
      expect.arrayContaining(['state', 'info', 'health', 'log-level'].map((one) => `hub2mqtt/bridge/shard-1/${one}`)),
    )
  })

  it('reports the members of the fleet, and the owner of each hub from the messages of the hubs', async () => {
    const { fleet } = await snapshotOf(url)
    expect(fleet).toMatchObject({ mode: 'static', member: 'shard-1', acts: true, count: 2 })
    expect(Object.keys(fleet?.members ?? {})).toEqual(NAMES)
    expect(fleet?.owners).toEqual(Object.fromEntries(shards.owners()))
    expect(NAMES).toContain(fleet?.speaker)
  })

  it('has the states of the other members and of their hubs, and no other topics of those hubs', async () => {
    const topics = ['bridge', 'bridge/shard-2', ...hubsOf('shard-2')].map((one) => `hub2mqtt/${one}/state`)
    const areOnline = async () => {
      const now = await state()
      return topics.every((topic) => now[topic] === 'online')
    }
    await until('their states', areOnline, 10_000, POLL_MS)
    const known = Object.keys(await state())
    const isTheirs = (topic: string) => hubsOf('shard-2').some((hub) => topic.startsWith(`hub2mqtt/${hub}/`))
    expect(known.filter(isTheirs).toSorted()).toEqual(hubsOf('shard-2').map((hub) => `hub2mqtt/${hub}/state`))
    expect(known.filter((topic) => topic.startsWith('hub2mqtt/bridge/shard-2/'))).toEqual([
      'hub2mqtt/bridge/shard-2/state',
    ])
  })

  it('refuses a command for a hub of another member, and names its owner', async () => {
    const [own = '', others = ''] = [hubsOf('shard-1')[0], hubsOf('shard-2')[0]]
    const send = async (hub: string) => {
      const response = await fetch(`${url}/api/commands/${hub}/refresh`, { method: 'POST', headers: owner })
      return { status: response.status, answer: await response.json() }
    }
    expect(await send(own)).toMatchObject({ status: 200, answer: { ok: true } })
    expect(await send(others)).toMatchObject({
      status: 404,
      answer: { error: { code: 'unknown_hub', message: expect.stringContaining('Member shard-2 of the fleet') } },
    })
    expect(await send('nowhere')).toMatchObject({
      answer: { error: { code: 'unknown_hub', message: 'No hub of that name is configured.' } },
    })
  })

  it('refuses to start or cancel a rollout unless it is the leader, and names the leader', async () => {
    const leader = ownerOf(LEADER, NAMES) ?? ''
    const member = leader === 'shard-1' ? other : own
    const at = await addressOf(member)
    const headers = { 'content-type': 'application/json', ...(await member.owner()) }
    const orders = { rollout: { ...RESTART, transaction: 'r' }, 'rollout-cancel': { transaction: 'r' } }
    for (const [command, order] of Object.entries(orders)) {
      const request = { method: 'POST', headers, body: JSON.stringify(order) }
      const response = await fetch(`${at}/api/commands/bridge/${command}`, request)
      expect(await response.json()).toMatchObject({
        error: { code: 'busy', message: expect.stringContaining(`Member ${leader} leads the fleet`) },
      })
    }
  })

  it('reports that another member has left', async () => {
    await other.stop()
    const isGone = async () => (await state())['hub2mqtt/bridge/shard-2/state'] === 'offline'
    await until('its state', isGone, 10_000, POLL_MS)
  })
})

it.skipIf(natsPath === undefined)(
  'over HTTP, a member that shares hubs by leases follows its hubs to another member and back, and never loses their states',
  async () => {
    await using nats = await startNats()
    await using leased = await Fleet.build({ hubs: 6, env: HTTP })
    const api = await addressOf(leased.join(nats, 'a'))
    const second = leased.join(nats, 'b')
    const knows = (members: readonly string[]) => async () => {
      const { fleet } = await snapshotOf(api)
      const isSettled = isDeepStrictEqual(fleet?.owners, Object.fromEntries(leased.owners()))
      return isDeepStrictEqual(Object.keys(fleet?.members ?? {}), members) && isSettled
    }
    await until('two members', knows(['a', 'b']), 60_000, POLL_MS)
    await second.stop()
    await until('one member', knows(['a']), 60_000, POLL_MS)
    leased.join(nats, 'b')
    await until('two again', knows(['a', 'b']), 60_000, POLL_MS)
    const { fleet, state: told } = await snapshotOf(api)
    expect(fleet).toMatchObject({ mode: 'leases', member: 'a', acts: true, count: 2 })
    const others = [...leased.owners()].flatMap(([hub, owner]) => (owner === 'b' ? [hub] : []))
    expect(others).not.toEqual([])
    for (const hub of others) {
      expect(told.filter(([topic]) => topic.startsWith(`hub2mqtt/${hub}/`))).toEqual([
        [`hub2mqtt/${hub}/state`, 'online'],
      ])
    }
  },
  120_000,
)
