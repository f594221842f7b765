import { describe, expect, test } from 'vitest'
import { createTopics } from '../../src/contract/topics.ts'

const topics = createTopics('b')

describe('an own topic', () => {
  test('of a rollout is recognised whatever its name is, and is never that of a hub', () => {
    for (const transaction of ['t', 'state', 'info', 'a/b']) {
      const topic = topics.of('rollout', { transaction })
      expect(topics.parse(topic)).toMatchObject({ name: 'rollout', owner: { kind: 'bridge' } })
    }
    expect(topics.parse('b/rollout/app/x')).toBeUndefined()
  })

  test("has a member's name behind `bridge` in a fleet, and is accepted in that form only, by that member only", () => {
    const ofMember = createTopics('b', 'shard-1')
    expect(ofMember.of('bridgeHealth', {})).toBe('b/bridge/shard-1/health')
    expect(ofMember.of('fleet', {})).toBe('b/fleet')
    expect(ofMember.of('bridgeState', {})).toBe(ofMember.memberState('shard-1'))
    expect(ofMember.memberState('shard-2')).toBe('b/bridge/shard-2/state')
    expect(ofMember.availability).toBe('b/bridge/state')
    expect(ofMember.parse('b/bridge/shard-1/state')).toMatchObject({ name: 'bridgeState', owner: { kind: 'bridge' } })
    for (const topic of ['b/bridge/state', 'b/bridge/shard-2/state']) expect(ofMember.parse(topic)).toBeUndefined()
    expect(topics.parse('b/bridge/shard-2/state')).toBeUndefined()
    expect([ofMember.member, topics.member]).toEqual(['shard-1', null])
  })

  test('is matched by a filter of its row, with the parameters that are known', () => {
    expect(topics.fill('app')).toBe('b/+/app/+')
    expect(topics.fill('app', { app: 'a/b' })).toBe('b/+/app/a%2Fb')
    expect(topics.fill('rollout')).toBe('b/rollout/+')
  })
})

test('a topic of a member of a fleet is recognised for any member, and is neither a command nor an answer', () => {
  expect(topics.memberFilters).toContain('b/bridge/+/log-level')
  expect(topics.parseMember('b/bridge/other/log-level')).toEqual({ name: 'bridgeLogLevel', member: 'other' })
  for (const topic of ['cmd/log-level', 'result/log-level', 'other/else', 'Other/info', 'info', 'other/info/more']) {
    expect(topics.parseMember(`b/bridge/${topic}`), topic).toBeUndefined()
  }
})

describe('a command topic', () => {
  test('determines its target, and the topic of its answer', () => {
    expect(topics.parseCommand('b/home/app/com.a%2Fb/cmd/restart')).toEqual({
      target: 'app',
      hub: 'home',
      app: 'com.a/b',
      command: 'restart',
      argument: undefined,
      result: 'b/home/app/com.a%2Fb/result/restart',
    })
    expect(topics.parseCommand('b/home/cmd/speak')).toMatchObject({ target: 'hub', hub: 'home', app: null })
    expect(topics.parseCommand('b/bridge/cmd/ping')).toMatchObject({ target: 'bridge', hub: null, command: 'ping' })
    expect(topics.parseCommand('b/home/app/x/cmd/set-setting/a%2Fb')).toMatchObject({ argument: 'a%2Fb' })
  })

  test('without a command, or with too many levels, still gets an answer', () => {
    expect(topics.parseCommand('b/home/cmd')).toMatchObject({ command: '', result: 'b/home/result' })
    expect(topics.parseCommand('b/home/app/x/cmd/get/1/2')).toMatchObject({ command: 'get', argument: '1/2' })
  })

  test('is distinguished from any other topic', () => {
    for (const topic of ['b/home/state', 'b/home/app/x', 'b/home/app/x/result/restart', 'c/home/cmd/speak', 'b']) {
      expect(topics.parseCommand(topic)).toBeUndefined()
    }
  })
})

describe('an answer', () => {
  const rules = ['homeassistant', []] as const

  test('is sent to a topic of the requester or to a result topic', () => {
    const free = ['me/answers', 'b2/home/state', 'homeassistants/x', 'b/home/result/speak', 'b/home/app/x/result/get']
    for (const topic of [...free, `me${'/x'.repeat(63)}`]) expect(topics.mayAnswerOn(topic, ...rules), topic).toBe(true)
  })

  test('is never sent to a wildcard, to a topic of the bridge, or to a discovery topic of Home Assistant', () => {
    const invalid = [
      `me${'/x'.repeat(64)}`,
      '',
      'a/+',
      'a/#',
      '$SYS/x',
      'a\0b',
      'homeassistant',
      'homeassistant/switch/x/config',
    ]
    const ofHub = ['b/home/state', 'b/home/app/result', 'b/home/cmd/speak', 'b/home/app/x/cmd/restart']
    const others = ['b', 'b/bridge/info', 'b/home/app/x/event', 'b/home/app/x/setting/result', 'b/rollout/result']
    for (const topic of [...invalid, ...ofHub, ...others])
      expect(topics.mayAnswerOn(topic, ...rules), topic).toBe(false)
  })

  test('is sent below the configured topics only, if there are any', () => {
    const narrow = ['homeassistant', ['answers', 'homeassistant', 'b/home/cmd']] as const
    for (const topic of ['answers', 'answers/me', 'b/home/result/speak']) {
      expect(topics.mayAnswerOn(topic, ...narrow), topic).toBe(true)
    }
    for (const topic of ['me/answers', 'answers2', 'homeassistant/x/config', 'b/home/cmd/speak']) {
      expect(topics.mayAnswerOn(topic, ...narrow), topic).toBe(false)
    }
  })
})
