import { expect, test } from 'vitest'
import { PROBES } from '../../src/cli/conformance/probes.ts'
import { OPERATIONS } from '../../src/hub/operations.ts'

interface Request {
  readonly method: string
  readonly manager: string
  readonly path: string
}

/** Returns a request as `GET apps/app/:`, without the names of parameters and without a trailing slash. */
const lineOf = ({ method, manager, path }: Request) =>
  `${method} ${manager}${path.replaceAll(/:\w+/g, ':').replace(/(?<=.)\/$/, '')}`

const EXAMINED = Object.values(PROBES).map(lineOf)

test('the conformance tool has a row for every operation that the bridge uses', () => {
  const missing = Object.entries<Request & { readonly otherPath?: string }>(OPERATIONS).filter(([, operation]) => {
    const paths = [operation.path, operation.otherPath ?? operation.path]
    return !paths.every((path) => EXAMINED.includes(lineOf({ ...operation, path })))
  })
  expect(missing.map(([name]) => name)).toEqual([])
})
