/** Reduces memory use, and makes Linux kill short-lived commands before a daemon in the same container. */
import { writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'

/**
 * Do not optimise the HTTP parser's WebAssembly: compiling it takes 20 MB for a few requests. Keep the young
 * generation small, because there is time to collect it.
 */
const FLAGS = ['--no-wasm-tier-up', '--no-wasm-dynamic-tiering', '--semi-space-growth-factor=1']

/** From this number of hubs on, memory matters more than the time for garbage collection. */
const MANY_HUBS = 50
/** By default, V8 lets the heap grow to several times its used size before it collects garbage. */
const FRUGAL = '--heap-growing-percent=30'
/** Lets V8 also collect garbage and return memory while idle. Node.js 20 and 22 do not have this option. */
const SAVING = '--memory-saver-mode'
const SAVING_SINCE = 24

export function limitHeap(hubs: number): void {
  if (hubs >= MANY_HUBS) setFlagsFromString(FRUGAL)
}

/** Call this after startup, which would otherwise take a fifth more CPU time. */
export function limitHeapAtRest(hubs: number): void {
  if (hubs >= MANY_HUBS && Number.parseInt(process.versions.node, 10) >= SAVING_SINCE) setFlagsFromString(SAVING)
}

export function takeLittleMemory(): void {
  for (const flag of FLAGS) setFlagsFromString(flag)
  try {
    // When memory runs out, Linux kills the process with the highest score; the daemon's score stays unchanged.
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // Not available on this system.
  }
}
