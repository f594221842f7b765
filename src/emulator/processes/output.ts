/** What an app has written to its standard output and error, the latest; it outlives the app's processes. */
import { StringDecoder } from 'node:string_decoder'

const LIMIT_BYTES = 64 * 1024

export class Output {
  #chunks: Buffer[] = []
  #bytes = 0

  add(chunk: Buffer): void {
    this.#chunks.push(chunk.length > LIMIT_BYTES ? chunk.subarray(-LIMIT_BYTES) : chunk)
    this.#bytes += this.#chunks.at(-1)?.length ?? 0
    // Joined now and then: an app that writes byte by byte must not cost an object for each.
    if (this.#bytes <= LIMIT_BYTES && this.#chunks.length < 1024) return
    const joined = Buffer.concat(this.#chunks)
    const kept = Buffer.from(joined.subarray(Math.max(0, joined.length - LIMIT_BYTES)))
    this.#chunks = [kept]
    this.#bytes = kept.length
  }

  /** A line of the hub's own. */
  note(text: string): void {
    this.add(Buffer.from(`[hub] ${text}\n`))
  }

  toString(): string {
    const bytes = Buffer.concat(this.#chunks)
    let start = 0
    // Neither from nor to the middle of a character.
    while (start < 4 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1
    return new StringDecoder('utf8').write(bytes.subarray(start))
  }
}
