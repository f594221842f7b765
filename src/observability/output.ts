/** Where log lines go: written at once, so that the last words before an exit are not lost, and never fatal. */
import { writeSync } from 'node:fs'

export interface Destination {
  write(text: string): void
}

export interface Output extends Destination {
  /** Blocks until all that waits is written, for `limitMs` at most: the last chance before an exit. */
  drain(limitMs: number): void
}

/** How much waits for a terminal or pipe that does not take more for the moment. */
const MAX_WAITING_BYTES = 1_048_576
const RETRY_MS = 50
const LONGEST_LINE_BYTES = 4096
const MOST_BYTES_OF_A_CHARACTER = 3
const DRAIN_STEP_MS = 5

type Write = (chunk: Buffer) => number

const isBusy = (error: unknown) => error instanceof Error && 'code' in error && error.code === 'EAGAIN'

function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/**
 * Writes to a file descriptor. What cannot be written (reader gone, disk full) is dropped and the next line is tried
 * again: a daemon outlives its log, and a disk that has room again gets the log back.
 *
 * @param write - Writes a part of the chunk and returns its size; default: to standard output.
 */
export function createOutput(write: Write = (chunk) => writeSync(1, chunk)): Output {
  let waiting = Buffer.alloc(0)
  // For lines that need not wait: most are written whole, and a Buffer for each would cost as much as the writing.
  const line = Buffer.allocUnsafeSlow(LONGEST_LINE_BYTES)
  let timer: NodeJS.Timeout | undefined

  /** Writes what it can, and says whether anything still waits for a busy reader. */
  const flush = (): boolean => {
    try {
      while (waiting.length > 0) waiting = waiting.subarray(write(waiting))
    } catch (error) {
      if (isBusy(error)) return true
      waiting = Buffer.alloc(0)
    }
    return false
  }
  const retry = (): void => {
    timer = flush() ? setTimeout(retry, RETRY_MS).unref() : undefined
  }

  return {
    write(text) {
      const isShort = waiting.length === 0 && text.length * MOST_BYTES_OF_A_CHARACTER <= line.length
      const chunk = isShort ? line.subarray(0, line.write(text)) : Buffer.from(text)
      if (waiting.length + chunk.length > MAX_WAITING_BYTES) return
      waiting = waiting.length === 0 ? chunk : Buffer.concat([waiting, chunk])
      if (timer === undefined) retry()
    },
    drain(limitMs) {
      const end = performance.now() + limitMs
      while (flush() && performance.now() < end) block(DRAIN_STEP_MS)
    },
  }
}
