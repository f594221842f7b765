/**
 * How much memory the process takes. Commands that end by themselves and may share a container with the daemon take
 * little, and go first.
 */
import { writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'

/**
 * No optimised code for the HTTP parser, which is WebAssembly: compiling it takes 20 MB for a few requests. And a young
 * generation that does not grow, as there is time to collect it.
 */
const FLAGS = ['--no-wasm-tier-up', '--no-wasm-dynamic-tiering', '--semi-space-growth-factor=1']

/** From so many hubs on, memory counts for more than the processor time that it takes to collect it more often. */
const MANY_HUBS = 50
/** By default V8 lets the heap grow to several times of what is in use before it collects garbage. */
const FRUGAL = '--heap-growing-percent=30'
/** V8 then collects garbage and gives memory back also while little happens. Node.js 20 and 22 do not know it. */
const SAVING = '--memory-saver-mode'
const SAVING_SINCE = 24

export function limitHeap(hubs: number): void {
  if (hubs >= MANY_HUBS) setFlagsFromString(FRUGAL)
}

/** To be called after the start, which takes a fifth more processor time with it. */
export function limitHeapAtRest(hubs: number): void {
  if (hubs >= MANY_HUBS && Number.parseInt(process.versions.node, 10) >= SAVING_SINCE) setFlagsFromString(SAVING)
}

export function takeLittleMemory(): void {
  for (const flag of FLAGS) setFlagsFromString(flag)
  try {
    // When memory runs out, Linux ends the process with the highest score; the daemon keeps its own.
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // Not on this system.
  }
}
