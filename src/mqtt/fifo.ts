/** A queue that removes its head in constant time. */

export class Fifo<T> {
  size = 0
  #items: T[] = []
  #head = 0

  push(item: T): void {
    this.#items.push(item)
    this.size += 1
  }

  peek(): T | undefined {
    return this.#items[this.#head]
  }

  shift(): T | undefined {
    const item = this.#items[this.#head]
    if (item === undefined) return undefined
    this.#head += 1
    this.size -= 1
    // The number of copied items is at most the number of items removed since the previous copy.
    if (this.#head >= this.size) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  reset(items: T[]): void {
    this.#items = items
    this.#head = 0
    this.size = items.length
  }

  /** Returns the items, oldest first. */
  values(): T[] {
    return this.#items.slice(this.#head)
  }
}
