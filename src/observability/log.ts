/** The log, which has one line per event, as JSON or in readable form, without known secrets. */
import { createRequire } from 'node:module'
import pino from 'pino'
import type { LogFormat, LogLevel } from '../contract/log-levels.ts'
import { shownJson, shownLine } from './controls.ts'
import { createOutput, type Destination, RecentLines } from './output.ts'
import { Scrubber } from './scrub.ts'

export interface LogOptions {
  readonly level: LogLevel
  /** `auto` is `pretty` on a terminal, otherwise `json`. */
  readonly format: LogFormat
  /** Values to mask. Values with fewer than four characters are not masked, because they are part of too many words. */
  readonly secrets: Iterable<string>
  /** Where to write lines; default: standard output. If writing throws, only the line is lost. */
  readonly destination?: Destination
  /** Whether the latest lines are kept in memory (default: no). */
  readonly keep?: boolean
  /** Whether the destination is a terminal; default: whether standard output is a terminal. */
  readonly isTTY?: boolean
}

export type Log = ReturnType<typeof createLog>

/** Prints readable lines in this process, because a worker thread would lose the last lines at exit. */
function prettyPrinter(output: Destination, isTTY: boolean): Destination {
  // Load `pino-pretty` on demand, because a service writes JSON and does not need this library.
  const { isColorSupported, prettyFactory }: typeof import('pino-pretty') = createRequire(import.meta.url)(
    'pino-pretty',
  )
  const colorize = isTTY && isColorSupported
  const pretty = prettyFactory({ colorize, ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss.l', singleLine: true })
  return { write: (line) => output.write(pretty(shownLine(line))) }
}

const DRAIN_MS = 1000

/** Opens standard output. Its reader may be slow, so the process waits for pending lines at exit. */
function standardOutput(): Destination {
  const output = createOutput()
  process.once('exit', () => output.drain(DRAIN_MS))
  return output
}

/** Drops lines instead of throwing errors, so that the log cannot stop the daemon. */
function harmless(output: Destination): Destination {
  return {
    write(line) {
      try {
        output.write(line)
      } catch {
        // A failure of the log cannot be logged.
      }
    },
  }
}

export function createLog(options: LogOptions) {
  const { level, format, secrets, destination, keep = false, isTTY = process.stdout.isTTY } = options
  const scrubber = new Scrubber(secrets)
  // Writing to standard output never throws.
  const output = destination === undefined ? standardOutput() : harmless(destination)
  const isPretty = format === 'pretty' || (format === 'auto' && isTTY)
  const recent = new RecentLines()
  const written = (line: string) => {
    // Mask and escape in the last step before the destination, where pino's output is plain JSON text.
    const clean = shownJson(scrubber.line(line))
    if (keep) recent.add(clean)
    return clean
  }
  const children = new Set<WeakRef<pino.Logger>>()
  const logger: pino.Logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: pino.stdSerializers.err, error: pino.stdSerializers.err },
      hooks: { streamWrite: written },
      onChild: (child: pino.Logger) => {
        children.add(new WeakRef(child))
      },
    },
    isPretty ? harmless(prettyPrinter(output, isTTY)) : output,
  )
  const audit = logger.child({ part: 'audit' }, { level: 'info' })
  // Set the level again: pino ignores the level of the new child if it equals the parent's level, and would later
  // change the child's level together with the parent's level.
  audit.level = 'info'
  // Remove the audit from the list of children, so that `setLevel` does not change its level.
  children.clear()
  return Object.assign(logger, {
    /** The logger for the audit of commands, which does not depend on the log level. */
    audit,
    recent,
    /** Masks an additional value, such as a changed key, in all later lines of this logger and its children. */
    addSecret: (secret: string) => scrubber.add(secret),
    /** Writes a line that is not JSON, for people who read the output directly. */
    print: (line: string) => output.write(`${line}\n`),
    /** Changes the level of this logger and all its children; pino's own `level` does not change the children. */
    setLevel(wanted: LogLevel) {
      logger.level = wanted
      for (const reference of children) {
        const child = reference.deref()
        if (child === undefined) children.delete(reference)
        else child.level = wanted
      }
    },
  })
}
