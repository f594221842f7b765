/** An app of a step, as its topic shows it. */
import { readApp, type SeenApp } from './plan.ts'
import type { Notice } from './progress.ts'

export class WatchedApp {
  readonly #changed: Notice
  #seen: SeenApp | undefined
  #crashed = false

  constructor(changed: Notice) {
    this.#changed = changed
  }

  take(text: string): void {
    const before = this.#seen
    this.#seen = readApp(text)
    if (before !== undefined && this.#seen !== undefined && isCrash(before, this.#seen)) this.#crashed = true
    this.#changed.ring()
  }

  /** Whether it has crashed since it is watched. */
  get hasCrashed(): boolean {
    return this.#crashed
  }

  /** Whether it runs, or is not meant to. What a hub does not tell is not held against it. */
  get runsWell(): boolean {
    if (this.#seen === undefined || this.#seen.crashed === true) return false
    const { state, enabled } = this.#seen
    return state === 'running' || state === null || enabled === false
  }
}

function isCrash(before: SeenApp, after: SeenApp): boolean {
  if (after.crashed !== true) return false
  return before.crashed !== true || (after.crash_count ?? 0) > (before.crash_count ?? 0)
}
