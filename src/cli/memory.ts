import { writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'

/**
 * Do not optimise the WebAssembly of the HTTP parser, because compiling it takes 20 MB, and few requests use it. Keep
 * the young generation small, although it is then collected more often.
 */
const FLAGS = ['--no-wasm-tier-up', '--no-wasm-dynamic-tiering', '--semi-space-growth-factor=1']

/** With more hubs, memory matters more than the time that garbage collection takes. */
const MANY_HUBS = 50
/** By default, V8 lets the heap grow to several times its used size before it collects garbage. */
const FRUGAL = '--heap-growing-percent=30'
/** Lets an idle V8 collect garbage and return memory. */
const SAVING = '--memory-saver-mode'

export function limitHeap(hubs: number): void {
  if (hubs >= MANY_HUBS) setFlagsFromString(FRUGAL)
}

/** Must be called after the startup, which would otherwise take a fifth more CPU time. */
export function limitHeapAtRest(hubs: number): void {
  if (hubs >= MANY_HUBS) setFlagsFromString(SAVING)
}

export function takeLittleMemory(): void {
  for (const flag of FLAGS) setFlagsFromString(flag)
  try {
    // When memory runs out, Linux kills the process with the highest score first, so give this process a higher score.
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // Not available on this system.
  }
}
