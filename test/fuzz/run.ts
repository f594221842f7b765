/** Feeds inputs to an entry point and finds those that block the event loop for too long. */
import { Random } from '../support/random.ts'
import { longestBlock } from './blocks.ts'

export interface Entry<T> {
  readonly name: string
  readonly batch: number
  input(random: Random): T
  /** Inputs that are tried first, because random inputs rarely resemble them. */
  readonly first?: readonly T[]
  open(): Opened<T> | Promise<Opened<T>>
}

export interface Opened<T> extends AsyncDisposable {
  /** Feeds the inputs. If it returns a promise, the promise resolves when all inputs have been processed. */
  feed(inputs: readonly T[]): unknown
}

/** Maximum time for which an input may block the daemon. */
export const LIMIT_MS = 100
/** With other tests on the same cores, a megabyte that takes 24 ms alone took over 100 ms three times in a row. */
const TRIES = 10

export interface Row {
  readonly entry: string
  readonly inputs: number
  readonly longestMs: number
  /** The texts of the inputs that take longer than the limit, truncated. */
  readonly slow: readonly string[]
  readonly seconds: number
}

export const fuzzed = <T>(entry: Entry<T>) => ({
  name: entry.name,
  run: (count: number, seed: number) => run(entry, count, seed),
})

/**
 * Returns the longest time for which one of the inputs blocks the event loop. A batch may be slow only because of its
 * size or of garbage collection, so each input of a slow batch is tried separately, up to `TRIES` times.
 */
export async function longestIn<T>(
  inputs: readonly T[],
  feed: (inputs: readonly T[]) => unknown,
  onSlow: (input: T, ms: number) => void = () => {},
): Promise<number> {
  const together = await longestBlock(() => feed(inputs))
  if (together <= LIMIT_MS) return together
  let longest = 0
  for (const input of inputs) {
    let ms = Number.POSITIVE_INFINITY
    for (let tries = 0; tries < TRIES && ms > LIMIT_MS; tries += 1)
      ms = Math.min(ms, await longestBlock(() => feed([input])))
    if (ms > LIMIT_MS) onSlow(input, ms)
    longest = Math.max(longest, ms)
  }
  return longest
}

async function run<T>(entry: Entry<T>, count: number, seed: number): Promise<Row> {
  const random = new Random(seed)
  const started = performance.now()
  const slow: string[] = []
  let longestMs = 0
  await using opened = await entry.open()
  const first = [...(entry.first ?? [])]
  const next = () => first.shift() ?? entry.input(random)
  for (let left = count; left > 0; left -= entry.batch) {
    const inputs = Array.from({ length: Math.min(entry.batch, left) }, next)
    const feed = (some: readonly T[]) => opened.feed(some)
    longestMs = Math.max(
      longestMs,
      await longestIn(inputs, feed, (input, ms) => slow.push(`${ms.toFixed(0)} ms: ${shown(input)}`)),
    )
  }
  return { entry: entry.name, inputs: count, longestMs, slow, seconds: (performance.now() - started) / 1000 }
}

function shown(input: unknown): string {
  const text = Buffer.isBuffer(input) ? input.toString() : typeof input === 'string' ? input : JSON.stringify(input)
  return `${text.length} characters, ${JSON.stringify(text.slice(0, 150))}`
}
