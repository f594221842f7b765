import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Capability, type Command, row } from '../../src/contract/command.ts'
import { COMMANDS } from '../../src/contract/commands.ts'
import { object } from '../../src/contract/payload.ts'
import {
  appFilter,
  availableCommands,
  COMMAND_SELECTORS,
  commandKey,
  isGuarded,
  lackOf,
  mayUse,
  permission,
  policyOf,
  refusalsOf,
  refusedBy,
  rolloutRefusal,
} from '../../src/contract/permissions.ts'
import type { Hub } from '../../src/hub/hub.ts'
import type { OperationName } from '../../src/hub/operations.ts'

const OPEN = { allow: [], deny: [], read_only: false, guarded: true }

function command(key: string): Command {
  const found = COMMANDS.find((one) => commandKey(one) === key)
  if (found === undefined) throw new Error(`no command ${key}`)
  return found
}

describe('configuration', () => {
  test('names a command of an app by its name, others with their target', () => {
    expect(['restart', 'hub/install', 'bridge/ping'].map((key) => commandKey(command(key)))).toEqual([
      'restart',
      'hub/install',
      'bridge/ping',
    ])
    expect(COMMAND_SELECTORS).toEqual(expect.arrayContaining(['restart', 'install', 'hub/install', 'ping']))
    expect(COMMAND_SELECTORS).not.toContain('app/restart')
    expect(new Set(COMMAND_SELECTORS).size).toBe(COMMAND_SELECTORS.length)
  })

  test('permits everything by default, except commands that must be allowed by name', () => {
    const off = COMMANDS.filter((one) => !mayUse(OPEN, one)).map(commandKey)
    expect(off).toEqual(['uninstall', 'hub/install', 'hub/call', 'bridge/rollout'])
    for (const selector of ['uninstall', '*'])
      expect(mayUse({ ...OPEN, allow: [selector] }, command('uninstall')), selector).toBe(true)
    expect(mayUse({ ...OPEN, allow: ['restart'] }, command('uninstall'))).toBe(false)
    expect(mayUse({ ...OPEN, allow: ['hub/install'] }, command('hub/install'))).toBe(true)
    expect(mayUse({ ...OPEN, allow: ['install'] }, command('hub/install'))).toBe(true)
  })

  test('without an app to watch refuses the command of the guardian, with the reason', () => {
    const unguarded = { ...OPEN, allow: ['*'], guarded: false }
    expect(COMMANDS.filter((one) => !mayUse(unguarded, one)).map(commandKey)).toEqual(['guard'])
    expect(refusedBy(unguarded, command('guard'))).toMatch(/guard\.watch/)
  })

  test.each([
    [[], 'manual', false],
    [['com.a'], 'manual', true],
    [[], 'auto', true],
    [['*'], 'auto', true],
  ])('that watches %j and updates by policy %s enables the guardian: %s', (watch, policy, on) => {
    const { guarded: _, ...commands } = OPEN
    const rules = { commands, guard: { watch }, updates: { policy } }
    expect(isGuarded(rules)).toBe(on)
    expect(policyOf(rules)).toEqual({ ...commands, guarded: on })
    expect(mayUse(policyOf(rules), command('guard'))).toBe(on)
    expect(mayUse(commands, command('guard'))).toBe(false)
  })

  test('that a reload replaces gives a new policy, and an unchanged one the same policy each time', () => {
    const rules = (deny: string[]) => ({
      commands: { allow: [], deny, read_only: false },
      guard: { watch: [] },
      updates: { policy: 'manual' },
    })
    const [before, after] = [rules([]), rules(['restart'])]
    expect(policyOf(before)).toBe(policyOf(before))
    expect([before, after, before].map((one) => mayUse(policyOf(one), command('restart')))).toEqual([true, false, true])
  })

  test('that refuses a command names the option', () => {
    const why = (policy: object, key: string, input?: object) => refusedBy({ ...OPEN, ...policy }, command(key), input)
    expect(why({ deny: ['restart'] }, 'restart')).toBe('commands.deny names restart.')
    expect(why({ deny: ['*'] }, 'hub/install')).toBe('commands.deny names hub/install.')
    expect(why({ read_only: true }, 'restart')).toBe('commands.read_only is set.')
    expect(why({}, 'hub/install')).toBe('It is off until commands.allow names hub/install.')
    expect(why({ guarded: false }, 'guard')).toBe('The guardian is off until guard.watch names an app.')
    expect(why({ guarded: false }, 'guard', { forget: true, enabled: true })).toContain('The guardian is off')
    expect(why({ guarded: false }, 'guard', { forget: true })).toBeUndefined()
    expect(why({ guarded: false, read_only: true }, 'guard', { forget: true })).toContain('read_only')
    expect(why({ deny: ['autoupdate'] }, 'update', { autoupdate: true })).toBe(
      'commands.deny names a command that does the same.',
    )
    expect(why({}, 'restart')).toBeUndefined()
  })

  test('decides whether rollouts are allowed, and which', () => {
    const policy = { ...OPEN, allow: ['rollout'], deny: ['restart'] }
    expect(rolloutRefusal(OPEN)).toBe('It is off until commands.allow names bridge/rollout.')
    expect([rolloutRefusal(policy), rolloutRefusal(policy, 'install')]).toEqual([undefined, undefined])
    expect(rolloutRefusal(policy, 'restart')).toBe('commands.deny names restart.')
  })

  test('that denies a command has priority over one that allows it', () => {
    const allow = ['*', 'restart']
    for (const deny of [['*'], ['restart']]) expect(mayUse({ ...OPEN, allow, deny }, command('restart'))).toBe(false)
    expect(mayUse({ ...OPEN, deny: ['enable'] }, command('restart'))).toBe(true)
    expect(mayUse({ ...OPEN, deny: ['*'] }, command('bridge/ping'))).toBe(false)
  })

  test('that denies a command leaves commands with other effects', () => {
    const policy = { ...OPEN, allow: ['*'], deny: ['enable', 'bridge/ping'] }
    const denied = COMMANDS.filter((one) => !mayUse(policy, one)).map(commandKey)
    expect(denied).toEqual(['enable', 'enabled', 'bridge/ping'])
  })

  test('that denies a command also denies its rollout, and no other', () => {
    const rollout = command('bridge/rollout')
    const may = (deny: string[], input: object, more = {}) =>
      mayUse({ ...OPEN, allow: ['bridge/rollout'], deny, ...more }, rollout, input)
    const [restart, install] = [{ command: 'restart' }, { command: 'install' }]
    expect(mayUse(OPEN, rollout, restart)).toBe(false)
    expect([may([], restart), may([], install)]).toEqual([true, true])
    expect([may(['restart'], restart), may(['restart'], install)]).toEqual([false, true])
    expect([may(['install'], restart), may(['install'], install)]).toEqual([true, false])
    expect([may(['rollout'], install), may([], install, { read_only: true })]).toEqual([false, false])
  })

  const channel = { channel: 'test' }
  const UPDATES = ['update autoupdate', 'update channel', 'update autoupdate,channel']
  const USES: readonly (readonly [key: string, input?: object])[] = [
    ['enable'],
    ['disable'],
    ['enabled'],
    ['autoupdate'],
    ['update', { autoupdate: true }],
    ['update', channel],
    ['update', { autoupdate: true, ...channel }],
    ['install', {}],
    ['install', channel],
    ['hub/install', {}],
    ['hub/install', channel],
    ['get'],
    ['get-settings'],
    ['get-setting'],
    ['set-setting'],
    ['hub/get-apps'],
    ['hub/update-all'],
  ]

  test.each([
    ['enable', ['enable', 'enabled']],
    ['disable', ['disable', 'enabled']],
    ['enabled', ['enable', 'disable', 'enabled']],
    ['autoupdate', ['autoupdate', 'update autoupdate', 'update autoupdate,channel']],
    ['update', ['autoupdate', ...UPDATES, 'install channel', 'hub/install channel']],
    [
      'install',
      [...UPDATES.slice(1), 'install ', 'install channel', 'hub/install ', 'hub/install channel', 'hub/update-all'],
    ],
    ['hub/install', ['hub/install ', 'hub/install channel']],
    ['get', ['get', 'hub/get-apps']],
    ['get-apps', ['hub/get-apps']],
    ['get-setting', ['get-settings', 'get-setting']],
    ['get-settings', ['get-settings', 'get-setting']],
    ['set-setting', ['set-setting']],
    ['update-all', ['hub/update-all']],
  ])('that denies %s denies all commands with the same effect, or only their input with it', (denied, refused) => {
    const policy = { ...OPEN, allow: ['*'], deny: [denied] }
    const found = USES.filter(([key, input]) => !mayUse(policy, command(key), input))
    expect(found.map(([key, input]) => (input === undefined ? key : `${key} ${Object.keys(input)}`))).toEqual(refused)
  })

  test('that denies all effects of a command denies the command', () => {
    const acts: Capability[] = ['enable', 'disable']
    const either = { payload: object({}), operation: 'getApp' as const, doc: '', run: () => Promise.resolve() }
    const made = row('app', 'either', { ...either, capabilities: acts, capabilitiesOf: () => [] })
    expect(mayUse({ ...OPEN, deny: ['enable'] }, made)).toBe(true)
    expect(mayUse({ ...OPEN, deny: ['enable', 'disable'] }, made)).toBe(false)
    expect(mayUse({ ...OPEN, deny: ['enable', 'disable'] }, row('app', 'either', either))).toBe(true)
  })

  test('for reading only leaves commands that change nothing, and those of the bridge', () => {
    const policy = { ...OPEN, allow: ['*'], read_only: true }
    for (const one of COMMANDS) {
      const mayRead = !one.write || (one.target !== 'bridge' && one.reaches !== undefined)
      expect(mayUse(policy, one), commandKey(one)).toBe(mayRead)
    }
  })
})

describe('the commands of a hub', () => {
  const hub = (...lacking: readonly OperationName[]): Pick<Hub, 'permits'> => ({
    permits: (operation) => (lacking.includes(operation) ? 'forbidden' : 'yes'),
  })

  test('are those that configuration and the key permit, each once, without those of the bridge', () => {
    const all = availableCommands(hub(), { ...OPEN, allow: ['*'] })
    expect(all).toEqual([...new Set(COMMANDS.filter(({ target }) => target !== 'bridge').map(({ name }) => name))])
    expect(availableCommands(hub(), OPEN)).not.toContain('uninstall')
    expect(availableCommands(hub('restartApp'), OPEN)).not.toContain('restart')
    const denied = ['disable', 'enabled', 'autoupdate', 'get', 'get-apps']
    const left = availableCommands(hub(), { ...OPEN, allow: ['*'], deny: ['disable', 'autoupdate', 'get'] })
    expect(all.filter((name) => !left.includes(name)).toSorted()).toEqual(denied.toSorted())
  })

  test('do not include refused ones, each with its reason: the configuration, the key or the hub', () => {
    expect(refusalsOf(hub(), { ...OPEN, allow: ['*'] })).toEqual({})
    const policy = { ...OPEN, allow: ['*'], deny: ['disable'] }
    expect(refusalsOf(hub('restartApp', 'disableApp', 'speak'), policy)).toEqual({
      disable: 'commands.deny names disable.',
      enabled: 'commands.deny names a command that does the same.',
      restart: 'The API key lacks hub.app.',
      guard: 'The API key lacks hub.app.',
      'hub/speak': 'The API key lacks hub.speech.',
    })
    const without = { permits: (operation: OperationName) => (operation === 'speak' ? 'unsupported' : 'yes') } as const
    expect(refusalsOf(without, { ...OPEN, allow: ['*'] })).toEqual({ 'hub/speak': 'This hub has no such operation.' })
  })

  test('include a generic call whatever the key permits, because its target is not known', () => {
    const call = command('hub/call')
    if (call.target === 'bridge') throw new Error('call is for a hub')
    expect(permission({ permits: () => 'forbidden' }, call)).toBe('yes')
    expect(lackOf(call)).toBe('The API key lacks a permission.')
  })
})

describe('an app', () => {
  test.each([
    [['*'], [], 'com.athom.hue', true],
    [['com.athom.*'], [], 'comXathomXhue', false],
    [['com.athom'], [], 'com.athom.hue', false],
    [['a*c'], [], 'a\nc', true],
    [['a+(b)[c]{1}^$|\\'], [], 'a+(b)[c]{1}^$|\\', true],
    [['a|b'], [], 'a', false],
    [['*'], ['com.athom.*'], 'com.athom.hue', false],
    [['*'], ['com.athom.*'], 'nl.philips.hue', true],
    [['a', 'b'], [], 'b', true],
    [['*'], ['a', 'b'], 'b', false],
    [[], [], 'a', false],
  ])('included by %j and excluded by %j: %j is visible: %j', (include, exclude, id, seen) => {
    expect(appFilter(include, exclude)(id)).toBe(seen)
  })

  test('is visible if the `*` and `?` of a pattern can match the rest of its id, with any number of stars', () => {
    const text = (...parts: string[]) =>
      fc.array(fc.constantFrom(...parts), { maxLength: 9 }).map((all) => all.join(''))
    const seenBy = (pattern: string, id: string): boolean => {
      const [wanted, ...rest] = pattern
      const [first, ...others] = id
      if (wanted === '*') return seenBy(rest.join(''), id) || (id !== '' && seenBy(pattern, others.join('')))
      if (wanted === undefined || first === undefined) return pattern === id
      return (wanted === '?' || wanted === first) && seenBy(rest.join(''), others.join(''))
    }
    const property = fc.property(text('*', '?', 'a', '.', '🔥'), text('a', '.', '*', '🔥'), (pattern, id) => {
      expect(appFilter([pattern], [])(id)).toBe(seenBy(pattern, id))
    })
    fc.assert(property, { numRuns: 3000 })
    expect(appFilter([`${'*?'.repeat(127)}x`], [])('a'.repeat(2000))).toBe(false)
  })
})
