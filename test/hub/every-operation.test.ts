import { describe, expect, test } from 'vitest'
import { PROBES } from '../../src/cli/conformance/probes.ts'
import { ENTRIES } from '../../src/emulator/core/table.ts'
import { OPERATIONS } from '../../src/hub/operations.ts'

interface Request {
  readonly method: string
  readonly manager: string
  readonly path: string
}

/** Returns a request as `GET apps/app/:`, without the names of parameters and without a trailing slash. */
const lineOf = ({ method, manager, path }: Request) =>
  `${method} ${manager}${path.replaceAll(/:\w+/g, ':').replace(/(?<=.)\/$/, '')}`

const EMULATED = ENTRIES.flatMap(({ item: manager, endpoint: { method, path, alias } }) =>
  [path, alias ?? path].map((one) => lineOf({ method, manager, path: one })),
)
const EXAMINED = Object.values(PROBES).map(lineOf)

/** Returns the operations without a row in the table. A second path of an operation needs a row too. */
const missingFrom = (table: readonly string[], operations: Readonly<Record<string, Request & Other>>) =>
  Object.entries(operations).flatMap(([name, operation]) => {
    const paths = [operation.path, operation.otherPath ?? operation.path]
    return paths.every((path) => table.includes(lineOf({ ...operation, path }))) ? [] : [name]
  })

interface Other {
  readonly otherPath?: string
}

describe.each([
  ['the emulated hub', EMULATED],
  ['the conformance tool', EXAMINED],
] as const)('%s', (_, table) => {
  test('has a row for every operation that the bridge uses', () => {
    expect(missingFrom(table, OPERATIONS)).toEqual([])
  })

  test.each([
    ['a path of its own', { ...OPERATIONS.getApp, path: '/app/:id/made-up' }],
    ['another method', { ...OPERATIONS.getApp, method: 'POST' }],
    ['another manager', { ...OPERATIONS.getApp, manager: 'made-up' }],
    ['a second path', { ...OPERATIONS.getApp, otherPath: '/made-up' }],
  ])('lacks a row for a made-up operation with %s', (_what, madeUp) => {
    expect(missingFrom(table, { ...OPERATIONS, madeUp })).toEqual(['madeUp'])
  })
})
