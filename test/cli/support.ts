import { perform } from '../../src/cli/perform.ts'

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
