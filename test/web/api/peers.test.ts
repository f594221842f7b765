import { describe, expect, it } from 'vitest'
import { followPeers } from '../../../src/cluster/fleet-member.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { createTopics } from '../../../src/contract/topics.ts'

const topics = createTopics('b', 'shard-1')

function listening() {
  const hub = { url: 'http://192.0.2.1', api_key: 'key-of-the-hub' }
  const text = JSON.stringify({ mqtt: { url: 'mqtt://192.0.2.2' }, hubs: { home: hub, cabin: hub } })
  const { config } = loadConfig({ file: 'hub2mqtt.yaml', env: {}, readFile: () => text })
  const state = new Map<string, string>()
  const feed = {
    held(topic: string, payload: string | null) {
      if (payload === null) state.delete(topic)
      else state.set(topic, payload)
    },
  }
  const members = [topics.memberState('shard-2')]
  const heard = followPeers(topics, members, new Set(['home']), { value: config }, feed)
  return { heard, state }
}

describe('of the messages of other members of a fleet', () => {
  it.each(['b/bridge/shard-2/state', 'b/bridge/state', 'b/cabin/state'])('%s is included', (topic) => {
    const { heard, state } = listening()
    heard(topic, 'online')
    expect(state.get(topic)).toBe('online')
    heard(topic, 'offline')
    expect(state.get(topic)).toBe('offline')
    heard(topic, '')
    expect(state.size).toBe(0)
  })

  it.each([
    ['the state of a hub that it serves itself', 'b/home/state', 'offline'],
    ['the state of a hub that is not configured', 'b/attic/state', 'online'],
    ['its own state', 'b/bridge/shard-1/state', 'offline'],
    ['the state of an unknown member', 'b/bridge/shard-3/state', 'online'],
    ['an app that looks like a state', 'b/cabin/app/state', 'online'],
    ['an invalid state', 'b/cabin/state', '<b>online</b>'],
    ['a state on another base topic', 'c/cabin/state', 'online'],
  ])('%s is ignored', (_, topic, payload) => {
    const { heard, state } = listening()
    heard(topic, payload)
    expect(state.size).toBe(0)
  })
})
