import { ExpectedError, UsageError } from './base/errors.ts'
import { VERSION } from './base/version.ts'
import { exitCodes } from './cli/command.ts'
import { takeLittleMemory } from './cli/memory.ts'
import { parseCommandLine } from './cli/parse.ts'
import { ConfigError } from './config/mistakes.ts'
import { shownText } from './observability/controls.ts'

const io = {
  env: process.env,
  // This is a getter, because Node.js opens stdin on first access.
  get stdin() {
    return process.stdin
  },
  print: (line: string) => console.log(line),
  warn: (line: string) => console.error(line),
}

function main(): number | Promise<number> {
  const line = parseCommandLine(process.argv.slice(2))
  if (!('lasts' in line && line.lasts)) {
    takeLittleMemory()
    outliveReaders()
  }
  if ('run' in line) return line.run(io)
  io.print(line.command === 'help' ? line.text : VERSION)
  return exitCodes.ok.code
}

/** Lets the command complete and set its exit code if a reader such as `head` closes the pipe early. */
function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
    })
  }
}

/** Prints the messages of expected errors; any other error is a bug and is printed with its stack. */
function explain(error: unknown): number {
  if (!(error instanceof ExpectedError)) {
    console.error(error)
    return exitCodes.failed.code
  }
  const messages = error instanceof ConfigError ? error.mistakes : [error.message]
  for (const message of messages) io.warn(`hub2mqtt: ${message.split('\n').map(shownText).join('\n')}`)
  return error instanceof UsageError ? exitCodes.usage.code : exitCodes.failed.code
}

/** Time limit for closing connections. A WebSocket to a hub that does not respond would take half a minute. */
const LINGER_MS = 500

process.exitCode = await Promise.try(main).catch(explain)
setTimeout(() => process.exit(), LINGER_MS).unref()
