/**
 * The hubs that this base topic had before, as `bridge/info` of the former run tells. What the broker still holds of them
 * is ours to clear. Everything else beside the hubs that are configured is somebody else's.
 */
import * as v from 'valibot'
import { readJson } from '../base/read-json.ts'

/** What is read from the broker is not trusted with more. */
const MAX_FORMER = 1_000
const MAX_NAME = 32

const INFO = v.object({ hubs: v.record(v.string(), v.unknown()) })

export class FormerHubs {
  readonly #names = new Set<string>()

  has(name: string): boolean {
    return this.#names.has(name)
  }

  add(name: string): void {
    if (this.#names.size < MAX_FORMER && name.length <= MAX_NAME) this.#names.add(name)
  }

  /** Takes in a payload of `bridge/info`. */
  learn(payload: string): this {
    for (const name of Object.keys(readJson(INFO, payload)?.hubs ?? {})) this.add(name)
    return this
  }
}
