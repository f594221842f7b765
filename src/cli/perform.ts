import { ExpectedError, UsageError } from '../base/errors.ts'
import { VERSION } from '../base/version.ts'
import { ConfigError } from '../config/mistakes.ts'
import { shownText } from '../observability/controls.ts'
import { exitCodes, type Io } from './command.ts'
import { parseCommandLine } from './parse.ts'

/**
 * Executes a command line, and returns the exit code.
 * @param onShort called before a command that ends by itself, unlike the daemon
 */
export async function perform(argv: readonly string[], io: Io, onShort = () => {}): Promise<number> {
  try {
    const line = parseCommandLine(argv)
    if (!('lasts' in line && line.lasts)) onShort()
    if ('run' in line) return await line.run(io)
    io.print(line.command === 'help' ? line.text : VERSION)
    return exitCodes.ok.code
  } catch (error) {
    return explain(error, io)
  }
}

/** Prints the messages of expected errors; any other error is a bug and is printed with its stack. */
function explain(error: unknown, { warn }: Io): number {
  if (!(error instanceof ExpectedError)) {
    console.error(error)
    return exitCodes.failed.code
  }
  const messages = error instanceof ConfigError ? error.mistakes : [error.message]
  for (const message of messages) warn(`hub2mqtt: ${message.split('\n').map(shownText).join('\n')}`)
  return error instanceof UsageError ? exitCodes.usage.code : exitCodes.failed.code
}
