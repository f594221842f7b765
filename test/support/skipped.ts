/** Prints a line for each group of skipped tests: which tests, why, and how to install a missing program. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const PATH = (process.env['PATH'] ?? '').split(delimiter)
const FOLDERS = [...PATH, '/usr/sbin', '/usr/local/sbin', '/opt/homebrew/sbin', '/opt/homebrew/bin']

/** Returns the condition `is`, for `skipIf` and `runIf`. Prints a line if the condition is `false`. */
export function available(is: boolean, what: string, why: string): boolean {
  if (!is) process.stderr.write(`skipped: ${what}, as ${why}\n`)
  return is
}

/** Like `available`, but throws with REQUIRE_`name`=1 if the condition is `false`. */
export function required(name: string, is: boolean, what: string, why: string): boolean {
  if (!is && process.env[`REQUIRE_${name}`] === '1') throw new Error(`REQUIRE_${name}=1, but ${why}`)
  return available(is, what, why)
}

/** Returns whether a program is installed. `from` describes how to install the program. */
export function hasProgram(program: string, args: readonly string[], what: string, from: string): boolean {
  const works = spawnSync(program, args, { stdio: 'ignore' }).status === 0
  return available(works, what, `${program} is not installed (${from})`)
}

/** Returns the path of a server; `undefined` if it is not installed, which is an error with REQUIRE_`title`=1. */
export function findServer(title: string, name: string, from: string, named?: string): string | undefined {
  const paths = named === undefined ? FOLDERS.map((folder) => join(folder, name)) : [named]
  const found = paths.find((path) => existsSync(path))
  const why = `${named ?? name} is not installed (${from})`
  required(title.toUpperCase(), found !== undefined, `the tests with ${title}`, why)
  return found
}
