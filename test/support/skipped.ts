/** Tests that need what not every machine has: each says in one line what is skipped, why, and what would help. */
import { spawnSync } from 'node:child_process'

/** Passes a condition on, for `skipIf` and `runIf`, and tells where it does not hold. */
export function available(is: boolean, what: string, why: string): boolean {
  if (!is) process.stderr.write(`skipped: ${what}, as ${why}\n`)
  return is
}

/** Whether a program is there and ends well with these arguments. `from`: where one gets it. */
export function hasProgram(program: string, args: readonly string[], what: string, from: string): boolean {
  const works = spawnSync(program, args, { stdio: 'ignore' }).status === 0
  return available(works, what, `there is no ${program} (${from})`)
}
