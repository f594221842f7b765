import { expect, test } from 'vitest'
import { MEMBER_NAME, memberNameOf } from '../../src/base/member-name.ts'

test.each([
  ['Bridge-0.example.org', 'bridge-0'],
  ['my host', 'my-host'],
  ['', 'member'],
  // These names are levels in the topics of commands and their answers.
  ['cmd', 'membercmd'],
  ['result', 'memberresult'],
  // This name cannot be a record key.
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
