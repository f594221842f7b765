import { expect, test } from 'vitest'
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

test.each([
  ['the emulated hub', EMULATED],
  ['the conformance tool', EXAMINED],
] as const)('%s has a row for every operation that the bridge uses', (_, table) => {
  const missing = Object.entries<Request & { readonly otherPath?: string }>(OPERATIONS).filter(([, operation]) => {
    const paths = [operation.path, operation.otherPath ?? operation.path]
    return !paths.every((path) => table.includes(lineOf({ ...operation, path })))
  })
  expect(missing.map(([name]) => name)).toEqual([])
})
