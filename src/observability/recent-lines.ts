/** The latest lines of the log, for the page: limited in number and in size, and numbered for those who read on. */

const MAX_LINES = 2_000
/** Characters of all lines together: at most 2 MiB in memory. */
const MAX_LENGTH = 1_048_576
/** A longer line is shortened. */
const MAX_LINE_LENGTH = 4_096
const MAX_TEXT_LENGTH = 1_000

/** Distinguishes the numbers of this process from those of an earlier one. */
const RUN = Math.round(performance.timeOrigin).toString(36)

export interface ReadLines {
  /** Oldest first, without the end of line. */
  readonly lines: string[]
  /** How many lines were dropped between those that were read before and these. */
  readonly missed: number
  /** What to pass to read on. */
  readonly next: string
}

export class RecentLines {
  /** By number, modulo its length. */
  readonly #kept: string[] = []
  /** The numbers of the oldest line and of the next one. */
  #first = 0
  #next = 0
  #length = 0

  /** @param line of JSON, with or without the end of line, without secrets */
  add(line: string): void {
    const text = line.length > MAX_LINE_LENGTH ? shortened(line) : line
    if (this.#next - this.#first === MAX_LINES) this.#drop()
    this.#kept[this.#next % MAX_LINES] = text
    this.#next += 1
    this.#length += text.length
    while (this.#length > MAX_LENGTH) this.#drop()
  }

  #drop(): void {
    const slot = this.#first % MAX_LINES
    this.#length -= this.#kept[slot]?.length ?? 0
    this.#kept[slot] = ''
    this.#first += 1
  }

  /** The lines that follow those of an earlier answer, by its `next`; all for any other text. */
  after(cursor: string): ReadLines {
    const [run, text] = cursor.split('.', 2)
    const number = run === RUN ? Number(text) : Number.NaN
    const wanted = Number.isSafeInteger(number) && number >= 0 ? number : this.#first
    const from = Math.min(Math.max(wanted, this.#first), this.#next)
    const lines = Array.from(
      { length: this.#next - from },
      (_, i) => this.#kept[(from + i) % MAX_LINES]?.trimEnd() ?? '',
    )
    return { lines, missed: Math.max(0, this.#first - wanted), next: `${RUN}.${this.#next}` }
  }
}

const cut = (text: unknown) => (typeof text === 'string' ? text.slice(0, MAX_TEXT_LENGTH) : undefined)

/** The most important fields of a long line, and its beginning. */
function shortened(line: string): string {
  const fields = fieldsOf(line)
  const [level, time, part, hub, app] = ['level', 'time', 'part', 'hub', 'app'].map((key) =>
    cut(fields[key])?.slice(0, 100),
  )
  const beginning = line.slice(0, MAX_TEXT_LENGTH)
  return JSON.stringify({
    level,
    time,
    part,
    hub,
    app,
    msg: cut(fields['msg']),
    shortened_from: line.length,
    beginning,
  })
}

function fieldsOf(line: string): Readonly<Record<string, unknown>> {
  try {
    return { ...JSON.parse(line) }
  } catch {
    // Masking a secret may have broken the JSON.
    return {}
  }
}
