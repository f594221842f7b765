/** The output of a long run: lines, and on a terminal a progress line below them. */

const CLEAR_LINE = '\r\u001b[K'

type Terminal = Pick<NodeJS.WriteStream, 'isTTY' | 'write'>

export class Status {
  readonly #terminal: Terminal
  #text = ''

  constructor(terminal: Terminal = process.stderr) {
    this.#terminal = terminal
  }

  /** Replaces the progress line; an empty string removes it. Does nothing without a terminal. */
  show(text: string): void {
    this.#text = text
    if (this.#terminal.isTTY) this.#terminal.write(`${CLEAR_LINE}${text}`)
  }

  print(line: string): void {
    if (this.#terminal.isTTY) this.#terminal.write(CLEAR_LINE)
    console.log(line)
    this.show(this.#text)
  }
}
