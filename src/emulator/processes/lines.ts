/** Lines out of a stream of bytes, each up to a longest length. */

const NEWLINE = 10

export class Lines {
  readonly #longest: number
  #rest: Buffer[] = []
  #bytes = 0

  constructor(longest: number) {
    this.#longest = longest
  }

  /** The lines that are complete by now; `undefined` once there was one that is too long. */
  take(chunk: Buffer): string[] | undefined {
    const lines: string[] = []
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      lines.push(Buffer.concat([...this.#rest, chunk.subarray(from, at)]).toString('utf8'))
      this.#rest = []
      this.#bytes = 0
      from = at + 1
    }
    this.#rest.push(chunk.subarray(from))
    this.#bytes += chunk.length - from
    return this.#bytes > this.#longest ? undefined : lines
  }
}
