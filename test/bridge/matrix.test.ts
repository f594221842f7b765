import { describe, expect, test } from 'vitest'
import { COMMANDS } from '../../src/contract/commands.ts'
import { mosquittoPath } from '../support/brokers.ts'
import { COLUMNS, expected, ROWS, runMatrix } from './matrix.ts'

test('the matrix has a row for every command', () => {
  const names = COMMANDS.map(
    ({ target, name, argument }) => `${target}/cmd/${name}${argument === undefined ? '' : '/<name>'}`,
  )
  expect(ROWS.map(({ name }) => name).sort()).toEqual(names.sort())
})

describe.skipIf(mosquittoPath === undefined)('every command', () => {
  test('ends as the contract says, in every way in which it can end', { timeout: 60_000 }, async () => {
    const table = await runMatrix()
    for (const row of ROWS) {
      for (const column of COLUMNS) {
        expect(`${row.name} ${column}: ${table.get(row.name)?.[column]}`).toBe(
          `${row.name} ${column}: ${expected(row, column)}`,
        )
      }
    }
  })
})
