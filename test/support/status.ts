/** Lines of a long run, and on a terminal below them one that tells how far it is. */

const CLEAR_LINE = '\r\u001b[K'

type Terminal = Pick<NodeJS.WriteStream, 'isTTY' | 'write'>

export class Status {
  readonly #terminal: Terminal
  #text = ''

  constructor(terminal: Terminal = process.stderr) {
    this.#terminal = terminal
  }

  /** Replaces the last line, which is gone with the empty text. In a pipe there is none. */
  show(text: string): void {
    this.#text = text
    if (this.#terminal.isTTY) this.#terminal.write(`${CLEAR_LINE}${text}`)
  }

  /** A line that stays. */
  say(line: string): void {
    if (this.#terminal.isTTY) this.#terminal.write(CLEAR_LINE)
    console.log(line)
    this.show(this.#text)
  }
}
