/** Commands that end by themselves and may share a container with the daemon: they take little memory, and go first. */
import { writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'

/**
 * No optimised code for the HTTP parser, which is WebAssembly: compiling it takes 20 MB for a few requests. And a young
 * generation that does not grow, as there is time to collect it.
 */
const FLAGS = ['--no-wasm-tier-up', '--no-wasm-dynamic-tiering', '--semi-space-growth-factor=1']

export function takeLittleMemory(): void {
  for (const flag of FLAGS) setFlagsFromString(flag)
  try {
    // Where memory runs out, Linux ends the process with the highest score; the daemon keeps its own.
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // Not on this system.
  }
}
