/** Writes log lines immediately, so that an exit loses no lines, and keeps the latest lines for the page. */
import { writeSync } from 'node:fs'
import { systemCode } from '../base/failures.ts'
import { isRecord, parseJson } from '../base/json.ts'

export interface Destination {
  write(text: string): void
}

/** Maximum number of bytes that wait for a busy terminal or pipe. */
const MAX_WAITING_BYTES = 1_048_576
const RETRY_MS = 50
const DRAIN_STEP_MS = 5

/** Writes the chunk or its beginning, and returns the number of bytes that were written. */
type Write = (chunk: Buffer) => number

function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** Drops lines that cannot be written (no reader, disk full), but tries again with the next line. */
export function createOutput(write: Write = (chunk) => writeSync(1, chunk)) {
  let waiting = Buffer.alloc(0)
  let timer: NodeJS.Timeout | undefined

  const flush = (): boolean => {
    try {
      while (waiting.length > 0) waiting = waiting.subarray(write(waiting))
    } catch (error) {
      if (systemCode(error) === 'EAGAIN') return true
      waiting = Buffer.alloc(0)
    }
    return false
  }
  const retry = (): void => {
    timer = flush() ? setTimeout(retry, RETRY_MS).unref() : undefined
  }

  return {
    write(text: string): void {
      const chunk = Buffer.from(text)
      if (waiting.length + chunk.length > MAX_WAITING_BYTES) return
      waiting = waiting.length === 0 ? chunk : Buffer.concat([waiting, chunk])
      if (timer === undefined) retry()
    },
    /** Blocks until all pending output is written, at most for `limitMs`. Call this before an exit. */
    drain(limitMs: number): void {
      const end = performance.now() + limitMs
      while (flush() && performance.now() < end) block(DRAIN_STEP_MS)
    },
  }
}

const MAX_LINES = 2_000
/** Maximum number of characters of all lines together, which take at most 2 MiB of memory. */
const MAX_LENGTH = 1_048_576
const MAX_LINE_LENGTH = 4_096
const MAX_TEXT_LENGTH = 1_000

/** Part of each cursor, because the line numbers start from 0 in each process. */
const RUN = Math.round(performance.timeOrigin).toString(36)

/** The latest lines, limited in number and size. Lines are numbered, so that a reader can continue where it stopped. */
export class RecentLines {
  readonly #lines: string[] = []
  #first = 0
  #length = 0

  /** @param line JSON without secrets, with or without a final line break */
  add(line: string): void {
    const text = line.length > MAX_LINE_LENGTH ? shortened(line) : line
    this.#lines.push(text)
    this.#length += text.length
    while (this.#lines.length > MAX_LINES || this.#length > MAX_LENGTH) {
      this.#length -= this.#lines.shift()?.length ?? 0
      this.#first += 1
    }
  }

  /**
   * Returns the lines since `cursor` (an earlier `next`), or all if it is invalid. `missed`: how many were dropped.
   */
  after(cursor: string) {
    const [run, text] = cursor.split('.', 2)
    const number = run === RUN ? Number(text) : Number.NaN
    const wanted = Number.isSafeInteger(number) && number >= 0 ? number : this.#first
    const lines = this.#lines.slice(Math.max(0, wanted - this.#first)).map((line) => line.trimEnd())
    return { lines, missed: Math.max(0, this.#first - wanted), next: `${RUN}.${this.#first + this.#lines.length}` }
  }
}

const cut = (text: unknown) => (typeof text === 'string' ? text.slice(0, MAX_TEXT_LENGTH) : undefined)

/** Returns the most important fields of a long line, and its beginning. */
function shortened(line: string): string {
  // The line might no longer be valid JSON, because masking a secret can break it.
  const parsed = parseJson(line)
  const fields = isRecord(parsed) ? parsed : {}
  const short = ['level', 'time', 'part', 'hub', 'app'].map((key) => [key, cut(fields[key])?.slice(0, 100)])
  return JSON.stringify({
    ...Object.fromEntries(short),
    msg: cut(fields['msg']),
    shortened_from: line.length,
    beginning: line.slice(0, MAX_TEXT_LENGTH),
  })
}
