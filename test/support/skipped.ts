/** Prints in one line which tests are skipped, why, and what would help. */
import { spawnSync } from 'node:child_process'

/** Returns the condition `is`, for `skipIf` and `runIf`. Prints a line if the condition is `false`. */
export function available(is: boolean, what: string, why: string): boolean {
  if (!is) process.stderr.write(`skipped: ${what}, as ${why}\n`)
  return is
}

/** Returns whether a program is installed. `from` describes how to install the program. */
export function hasProgram(program: string, args: readonly string[], what: string, from: string): boolean {
  const works = spawnSync(program, args, { stdio: 'ignore' }).status === 0
  return available(works, what, `${program} is not installed (${from})`)
}
