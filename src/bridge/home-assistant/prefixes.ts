/** The discovery prefixes under which something of ours may still be: the present one and those before it. */
import { discoveryFilters } from './discovery-topics.ts'

/** What is read from the broker is not trusted with more. */
const MAX_FORMER = 8
const PREFIX = /^[^$/+#\p{Cc}][^+#\p{Cc}]{0,127}$/u

export class Prefixes {
  readonly #present: string
  readonly #topic: string
  readonly #former = new Set<string>()
  /** Whether the broker says that something was published, and that has not been looked through yet. */
  #doubtful = false

  /** `topic` is where they are remembered. */
  constructor(present: string, topic: string) {
    this.#present = present
    this.#topic = topic
  }

  /** Takes in what the broker holds; filters to read what is under prefixes that were not known of. */
  learn(topic: string, payload: string): string[] {
    if (topic !== this.#topic) return []
    this.#doubtful = true
    for (const prefix of read(payload)) {
      if (prefix !== this.#present && this.#former.size < MAX_FORMER) this.#former.add(prefix)
    }
    return [...this.#former].flatMap(discoveryFilters)
  }

  includes(prefix: string): boolean {
    return prefix === this.#present || this.#former.has(prefix)
  }

  /** Everything has been looked through: nothing unwanted is left. */
  settle(): void {
    this.#former.clear()
    this.#doubtful = false
  }

  /** Those to remember; `null` if nothing is published and nothing is left. */
  all(publishing: boolean): readonly string[] | null {
    return publishing || this.#doubtful ? [this.#present, ...this.#former] : null
  }
}

function read(payload: string): string[] {
  try {
    const parsed: unknown = JSON.parse(payload)
    const prefixes: unknown =
      typeof parsed === 'object' && parsed !== null ? Reflect.get(parsed, 'prefixes') : undefined
    if (!Array.isArray(prefixes)) return []
    return prefixes.filter((prefix: unknown) => typeof prefix === 'string' && PREFIX.test(prefix))
  } catch {
    return []
  }
}
