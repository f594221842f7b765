/** The last `size` things, oldest first: a hub under load must not grow with what it was asked. */
export class Ring<T> {
  readonly #size: number
  #items: T[] = []
  #next = 0

  constructor(size: number) {
    this.#size = Math.max(1, size)
  }

  push(item: T): void {
    this.#items[this.#next] = item
    this.#next = (this.#next + 1) % this.#size
  }

  clear(): void {
    this.#items = []
    this.#next = 0
  }

  toArray(): T[] {
    if (this.#items.length < this.#size) return [...this.#items]
    return [...this.#items.slice(this.#next), ...this.#items.slice(0, this.#next)]
  }
}
