/** Functions for tests with special requirements, which print in one line what is skipped, why, and what would help. */
import { spawnSync } from 'node:child_process'

/** Returns the condition, for `skipIf` and `runIf`; prints a line if it is false. */
export function available(is: boolean, what: string, why: string): boolean {
  if (!is) process.stderr.write(`skipped: ${what}, as ${why}\n`)
  return is
}

/** Returns whether a program exists and succeeds with these arguments. `from`: how to install it. */
export function hasProgram(program: string, args: readonly string[], what: string, from: string): boolean {
  const works = spawnSync(program, args, { stdio: 'ignore' }).status === 0
  return available(works, what, `${program} is not installed (${from})`)
}
