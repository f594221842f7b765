import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { afterAll } from 'vitest'
import { perform } from '../../src/cli/perform.ts'

/** Resources that are closed at the end of the file, because its tests run concurrently and share some of them. */
export let open = new AsyncDisposableStack()
/** Call this once in each file, because several files may run in one process. */
export const closeAtEnd = () =>
  afterAll(async () => {
    await open.disposeAsync()
    open = new AsyncDisposableStack()
  })

/** Executes a command in this process. Use only commands that exit on their own. */
export async function performed(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const written = { stdout: '', stderr: '' }
  const status = await perform(args, {
    ...{ env, stdin: process.stdin },
    print(line) {
      written.stdout += `${line}\n`
    },
    warn(line) {
      written.stderr += `${line}\n`
    },
  })
  return { status, ...written }
}

/** Returns the Node.js programs in the PATH by their major version. */
export function nodesInPath(): ReadonlyMap<number, string> {
  const programs = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, 'node'))
  const versionOf = (node: string) =>
    Number.parseInt(spawnSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).stdout, 10)
  return new Map(programs.filter((node) => existsSync(node)).map((node) => [versionOf(node), node]))
}
