/**
 * Keeps clients that do not read from stalling the others. aedes waits for a client to read before it goes on, and with a
 * hundred messages waiting it takes no more from anybody. So it never learns that a client is slow; what waits for a client
 * is limited instead, and a client beyond the limit is dropped.
 */
import type { Duplex } from 'node:stream'

/** More than a large home retains: a client gets all of that at once when it subscribes. */
const FOR_ONE = 32 * 1024 * 1024
const FOR_ALL = 64 * 1024 * 1024
/** Less is not worth adding up. */
const LITTLE = 1024 * 1024

type Written = (error: Error | null | undefined) => void

export class Backlog {
  readonly #streams: ReadonlySet<Duplex>
  readonly #onDropped: (bytes: number) => void

  /** `streams`: those that count together. */
  constructor(streams: ReadonlySet<Duplex>, onDropped: (bytes: number) => void) {
    this.#streams = streams
    this.#onDropped = onDropped
  }

  watch(stream: Duplex): void {
    const write = stream.write.bind(stream)
    stream.write = (chunk: unknown, encoding?: BufferEncoding | Written, done?: Written) => {
      if (typeof encoding === 'string') write(chunk, encoding, done)
      else write(chunk, encoding ?? done)
      if (stream.writableLength > LITTLE) this.#check(stream)
      return true
    }
  }

  #check(stream: Duplex): void {
    if (stream.writableLength > FOR_ONE) this.#drop(stream)
    let all = 0
    let fullest = stream
    for (const other of this.#streams) {
      all += other.writableLength
      if (other.writableLength > fullest.writableLength) fullest = other
    }
    if (all > FOR_ALL) this.#drop(fullest)
  }

  #drop(stream: Duplex): void {
    if (stream.destroyed) return
    this.#onDropped(stream.writableLength)
    stream.destroy()
  }
}
