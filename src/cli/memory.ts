import { writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'

/**
 * The first two flags prevent V8 from optimising the HTTP parser's WebAssembly, which would take 20 MB to speed up only
 * a few requests. The third flag keeps the heap's young generation small, although V8 then collects it more often.
 */
const FLAGS = ['--no-wasm-tier-up', '--no-wasm-dynamic-tiering', '--semi-space-growth-factor=1']

/** With at least this many hubs, memory use matters more than the time for garbage collection. */
const MANY_HUBS = 50
/** Limits the growth of the heap. By default, V8 lets it grow to several times its used size between collections. */
const FRUGAL = '--heap-growing-percent=30'
/** Lets V8 collect garbage while it is idle, and return memory to the system. */
const SAVING = '--memory-saver-mode'

export function limitHeap(hubs: number): void {
  if (hubs >= MANY_HUBS) setFlagsFromString(FRUGAL)
}

/** Saves memory in an idle bridge. Must be called after the startup, which would otherwise take 20 % more CPU time. */
export function limitHeapAtRest(hubs: number): void {
  if (hubs >= MANY_HUBS) setFlagsFromString(SAVING)
}

export function reduceMemory(): void {
  for (const flag of FLAGS) setFlagsFromString(flag)
  try {
    // When memory runs out, Linux kills the process with the highest score first, so give this process a higher score.
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // Ignore the error: this system has no such file.
  }
}
