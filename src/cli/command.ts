/** What a command of the program is. */
import type { Flag, Flags } from './flags.ts'

/** What the process exits with. */
export const exitCodes = {
  ok: { code: 0, doc: 'done, or stopped as asked' },
  failed: { code: 1, doc: 'failed at run time, or doctor or conformance found a problem' },
  usage: { code: 2, doc: 'the command line or the configuration has a mistake' },
} as const

/** What a body reads besides its flags, and where it writes. */
export interface Io {
  readonly env: NodeJS.ProcessEnv
  readonly stdin: NodeJS.ReadStream
  /** Writes a line to standard output. */
  readonly print: (line: string) => void
  /** Writes a line to standard error. */
  readonly warn: (line: string) => void
}

/** What a command does; returns the exit code. */
export type Body<T> = (io: Io, flags: T) => number | Promise<number>

export interface Command {
  readonly summary: string
  readonly flags: Readonly<Record<string, Flag>>
  /** What stands after the command without a flag before it, the optional ones last. */
  readonly positionals: Readonly<Record<string, Flag>>
  /** Whether it runs until it is stopped. */
  readonly lasts: boolean
  /** Reads the texts that were given for flags and positionals, and returns the body with their values. */
  readonly read: (given: ReadonlyMap<string, readonly string[]>) => {
    readonly flags: object
    readonly run: (io: Io) => Promise<number>
  }
}

/** @param row.body - Imports the body: a command loads only what it uses. */
export function command<F, P = Record<never, never>>(row: {
  readonly summary: string
  readonly flags: Flags<F>
  readonly positionals?: Flags<P>
  readonly lasts?: true
  readonly body: () => Promise<Body<F & P>>
}): Command {
  const { summary, body, flags, lasts = false } = row
  const positionals: Readonly<Record<string, Flag>> = row.positionals ?? {}
  return {
    ...{ summary, flags, positionals, lasts },
    read(given) {
      const all = Object.entries<Flag>({ ...flags, ...positionals })
      const values = all.map(([name, flag]) => [name, flag.read(given.get(name) ?? [], name)])
      // Each of the keys of `F` and `P`, with the value of its flag's type.
      const read = Object.fromEntries(values) as F & P
      return { flags: Object.fromEntries(values), run: async (io) => (await body())(io, read) }
    },
  }
}
