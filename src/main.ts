import { takeLittleMemory } from './cli/memory.ts'
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

/** Lets the command complete and set its exit code if a reader such as `head` closes the pipe early. */
function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
    })
  }
}

/** Time limit for closing connections. A WebSocket to a hub that does not respond would take half a minute. */
const LINGER_MS = 500

process.exitCode = await perform(process.argv.slice(2), io, () => {
  takeLittleMemory()
  outliveReaders()
})
setTimeout(() => process.exit(), LINGER_MS).unref()
