/** Writes log lines at once, so that the last ones before an exit are not lost. Failures are never fatal. */
import { writeSync } from 'node:fs'

export interface Destination {
  write(text: string): void
}

export interface Output extends Destination {
  /** Blocks until all pending output is written, for `limitMs` at most, before an exit. */
  drain(limitMs: number): void
}

/** How much may wait for a terminal or pipe that is busy. */
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
 * Writes to a file descriptor. Lines that cannot be written (reader gone, disk full) are dropped, and the next line is
 * tried
 * again: the daemon keeps running without its log, and the log continues when the disk has room.
 *
 * @param write - Writes a part of the chunk and returns its size; default: to standard output.
 */
export function createOutput(write: Write = (chunk) => writeSync(1, chunk)): Output {
  let waiting = Buffer.alloc(0)
  // A shared buffer for lines written at once, as most are: allocating one for each would cost as much as writing.
  const line = Buffer.allocUnsafeSlow(LONGEST_LINE_BYTES)
  let timer: NodeJS.Timeout | undefined

  /** Writes what it can, and returns whether anything still waits for a busy reader. */
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
