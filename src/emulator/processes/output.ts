/** The latest standard output and error of an app, kept across its processes. */
import { StringDecoder } from 'node:string_decoder'

const LIMIT_BYTES = 64 * 1024

/** Maximum length of a shown line. A longer line is shown in parts. */
const MAX_LINE_LENGTH = 8192

export class Output {
  readonly #onLine: ((line: string) => void) | undefined
  #chunks: Buffer[] = []
  #bytes = 0

  /** @param onLine called with each complete line */
  constructor(onLine?: (line: string) => void) {
    this.#onLine = onLine
  }

  stream(): { readonly add: (chunk: Buffer) => void; readonly end: () => void } {
    const decoder = new StringDecoder('utf8')
    let rest = ''
    const add = (chunk: Buffer) => {
      this.#add(chunk)
      if (this.#onLine === undefined) return
      const lines = (rest + decoder.write(chunk)).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length >= MAX_LINE_LENGTH) {
        lines.push(rest)
        rest = ''
      }
      for (const line of lines) this.#onLine(line.endsWith('\r') ? line.slice(0, -1) : line)
    }
    return { add, end: () => void (rest === '' || this.#onLine?.(rest)) }
  }

  #add(chunk: Buffer): void {
    this.#chunks.push(chunk.length > LIMIT_BYTES ? chunk.subarray(-LIMIT_BYTES) : chunk)
    this.#bytes += this.#chunks.at(-1)?.length ?? 0
    // Join the chunks regularly, because an app that writes single bytes would otherwise need an object for each byte.
    if (this.#bytes <= LIMIT_BYTES && this.#chunks.length < 1024) return
    const joined = Buffer.concat(this.#chunks)
    const tail = Buffer.from(joined.subarray(Math.max(0, joined.length - LIMIT_BYTES)))
    this.#chunks = [tail]
    this.#bytes = tail.length
  }

  note(text: string): void {
    this.#add(Buffer.from(`[hub] ${text}\n`))
    this.show(text)
  }

  /** Shows a line from the hub without storing it. */
  show(text: string): void {
    for (const line of text.split('\n')) this.#onLine?.(`[hub] ${line}`)
  }

  toString(): string {
    const bytes = Buffer.concat(this.#chunks)
    let start = 0
    // Skip the rest of a character that was cut at the start.
    while (start < 4 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1
    return new StringDecoder('utf8').write(bytes.subarray(start))
  }
}
