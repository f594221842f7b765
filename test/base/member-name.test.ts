import { expect, test } from 'vitest'
import { MEMBER_NAME, memberNameOf } from '../../src/base/member-name.ts'

test.each([
  ['Bridge-0.example.org', 'bridge-0'],
  ['my host', 'my-host'],
  ['', 'member'],
  // The topics of commands and answers contain these names as levels, so no member can use them.
  ['cmd', 'membercmd'],
  ['result', 'memberresult'],
  // A record cannot have this name as a key.
  ['constructor', 'memberconstructor'],
  ['x'.repeat(40), 'x'.repeat(32)],
])('the machine "%s" is the member %s', (host, name) => {
  expect(memberNameOf(host)).toBe(name)
  expect(name).toMatch(MEMBER_NAME)
})

test.each(['cmd', 'result', '__proto__', 'constructor', 'prototype', 'Upper', 'a/b', ''])(
  '"%s" is not a valid member name',
  (name) => {
    expect(name).not.toMatch(MEMBER_NAME)
  },
)
