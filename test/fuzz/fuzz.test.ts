import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { runs } from '../support/runs.ts'
import { ENTRIES } from './entries.ts'
import { LIMIT_MS } from './run.ts'

/** The variables of a process without coverage, which makes a loop over a long text ten times slower. */
const { NODE_V8_COVERAGE: _, ...env } = process.env

test(`no input of any entry point blocks the event loop for more than ${LIMIT_MS} ms`, async () => {
  const inputs = String(runs(100))
  const args = ['test/fuzz/main.ts', '--count', inputs, '--seed', '20261']
  const { stdout, code } = await promisify(execFile)(process.execPath, args, { env }).then(
    (ended) => ({ ...ended, code: 0 }),
    (failed: { readonly stdout: string; readonly code: number }) => failed,
  )
  expect(code, stdout).toBe(0)
  for (const { name } of ENTRIES) expect(stdout).toContain(`| ${name} | ${inputs} |`)
})

test('the program prints a row for each entry', () => {
  const printed = execFileSync(process.execPath, ['test/fuzz/main.ts', '--count', '10', '--only', 'icons'])
  expect(String(printed)).toMatch(/^\| hub: icons \| 10 \|/m)
})
