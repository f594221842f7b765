/** The requests that a hub remembers: the latest ones, newest last. */
export interface RequestRecord {
  readonly at: number
  readonly via: 'rest' | 'socket'
  /** HTTP method; `API` for a call over the realtime channel, `EMIT` for the channel's own messages. */
  readonly method: string
  /** The request target as it came; over the realtime channel the message, such as `subscribe homey:manager:apps`. */
  readonly path: string
  readonly operation?: string
  readonly key?: string
  readonly body: unknown
  /** Absent while there is no answer, and for ever where a fault swallowed it. */
  readonly status?: number
  /** Whether it was carried out, even if the answer was lost; absent if it is no operation. */
  readonly executed?: boolean
}

/** The same while it is being written. */
export type OpenRecord = { -readonly [K in keyof RequestRecord]: RequestRecord[K] }

/** Adds an item; the oldest of more than `most` is forgotten. */
export function keepLast<T>(items: T[], item: T, most: number): void {
  items.push(item)
  if (items.length > most) items.shift()
}
