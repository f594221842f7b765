import { createHash } from 'node:crypto'
import * as v from 'valibot'

export const KEY = 'key-for-the-bench'

/** Returns the key of a hub. Each hub has its own key, as in different households; `bare` uses the first key. */
export const keyOf = (hub: number): string =>
  hub === 0 ? KEY : createHash('sha256').update(`${KEY} ${hub}`).digest('hex')

const count = v.pipe(v.number(), v.integer(), v.minValue(1))

export const HUB_REQUEST = v.variant('do', [
  /** With `evidence`, the keys also permit reads of the hub's health, devices and flows. */
  v.object({ do: v.literal('open'), hubs: count, apps: count, evidence: v.boolean() }),
  /** The answer is the number of requests that the hubs have received so far. */
  v.object({ do: v.literal('requests') }),
  /** Crashes the first app of the first hub. */
  v.object({ do: v.literal('crash') }),
  /** The answer is the number of open realtime sessions. */
  v.object({ do: v.literal('subscribers') }),
  /**
   * Sends events for the apps of each hub in turn, each with a different memory figure. The answer is the
   * time of the first event. `perSecond`: the maximum rate.
   */
  v.object({
    do: v.literal('burst'),
    events: count,
    from: count,
    eventful: v.boolean(),
    perSecond: v.optional(count),
  }),
])
export type HubRequest = v.InferOutput<typeof HUB_REQUEST>

export const HUB_ANSWER = v.object({ result: v.unknown() })
export type HubAnswer = v.InferOutput<typeof HUB_ANSWER>
