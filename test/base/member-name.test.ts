import { expect, test } from 'vitest'
import { MEMBER_NAME, memberNameOf } from '../../src/base/member-name.ts'

test.each([
  ['Bridge-0.example.org', 'bridge-0'],
  ['my host', 'my-host'],
  ['', 'member'],
  // These are where commands of the bridge arrive, and where their answers go.
  ['cmd', 'membercmd'],
  ['result', 'memberresult'],
  // A record of members cannot have these as keys.
  ['constructor', 'memberconstructor'],
  ['x'.repeat(40), 'x'.repeat(32)],
])('the machine "%s" is the member %s', (host, name) => {
  expect(memberNameOf(host)).toBe(name)
  expect(name).toMatch(MEMBER_NAME)
})

test.each(['cmd', 'result', '__proto__', 'constructor', 'prototype', 'Upper', 'a/b', ''])(
  '"%s" is no name of a member',
  (name) => {
    expect(name).not.toMatch(MEMBER_NAME)
  },
)
