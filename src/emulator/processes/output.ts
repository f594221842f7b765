/** The latest standard output and error of an app, kept across its processes. */
import { StringDecoder } from 'node:string_decoder'

const LIMIT_BYTES = 64 * 1024

/** Maximum length of a displayed line. A longer line is split. */
const MAX_LINE_LENGTH = 8192

export class Output {
  readonly #onLine: ((line: string) => void) | undefined
  #text = ''

  /** @param onLine called with each complete line */
  constructor(onLine?: (line: string) => void) {
    this.#onLine = onLine
  }

  stream(): { readonly add: (chunk: Buffer) => void; readonly end: () => void } {
    const decoder = new StringDecoder('utf8')
    let rest = ''
    const add = (chunk: Buffer) => {
      const text = decoder.write(chunk)
      this.#add(text)
      if (this.#onLine === undefined) return
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length >= MAX_LINE_LENGTH) {
        lines.push(rest)
        rest = ''
      }
      for (const line of lines) this.#onLine(line.endsWith('\r') ? line.slice(0, -1) : line)
    }
    return { add, end: () => void (rest === '' || this.#onLine?.(rest)) }
  }

  #add(text: string): void {
    this.#text += text
    // Cut rarely, because each cut copies the text.
    if (this.#text.length > 2 * LIMIT_BYTES) this.#text = this.#text.slice(-LIMIT_BYTES)
  }

  note(text: string): void {
    this.#add(`[hub] ${text}\n`)
    this.show(text)
  }

  /** Shows a line from the hub without storing it. */
  show(text: string): void {
    for (const line of text.split('\n')) this.#onLine?.(`[hub] ${line}`)
  }

  toString(): string {
    const bytes = Buffer.from(this.#text).subarray(-LIMIT_BYTES)
    let start = 0
    // Skip the rest of a character that was cut at the start.
    while (start < 4 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1
    return bytes.toString('utf8', start)
  }
}
