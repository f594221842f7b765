import { exitCodes } from './cli/command.ts'
import { reduceMemory } from './cli/memory.ts'
import { perform } from './cli/perform.ts'

const io = {
  env: process.env,
  // This is a getter, because Node.js opens stdin on first access.
  get stdin() {
    return process.stdin
  },
  print: (line: string) => console.log(line),
  warn: (line: string) => console.error(line),
}

let isOutputLost = false

/** If output cannot be written, lets the command finish and then fail, unless a reader such as `head` has ended. */
function surviveOutputErrors(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE' || isOutputLost) return
      isOutputLost = true
      process.exitCode ||= exitCodes.failed.code
      io.warn(`hub2mqtt: the output cannot be written: ${error.message}`)
    })
  }
}

/** Time limit for closing connections. A WebSocket to a hub that does not respond would take half a minute. */
const LINGER_MS = 500

const code = await perform(process.argv.slice(2), io, () => {
  reduceMemory()
  surviveOutputErrors()
})
if (!isOutputLost || code !== exitCodes.ok.code) process.exitCode = code
setTimeout(() => process.exit(), LINGER_MS).unref()
