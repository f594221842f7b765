/** What the bench and its hubs say to each other. */
import { createHash } from 'node:crypto'
import * as v from 'valibot'

export const KEY = 'key-for-the-bench'

/** Each hub has its own, as where they belong to different households. The first is what bare uses. */
export const keyOf = (hub: number): string =>
  hub === 0 ? KEY : createHash('sha256').update(`${KEY} ${hub}`).digest('hex')

const count = v.pipe(v.number(), v.integer(), v.minValue(1))

export const HUB_REQUEST = v.variant('do', [
  /** `evidence`: the keys also permit what is read of the hub, its devices and its flows. */
  v.object({ do: v.literal('open'), hubs: count, apps: count, evidence: v.boolean() }),
  /** Answered with how many requests there were so far. */
  v.object({ do: v.literal('requests') }),
  /** Lets the first app of the first hub crash. */
  v.object({ do: v.literal('crash') }),
  /** Answered with how many sessions hear of events. */
  v.object({ do: v.literal('subscribers') }),
  /**
   * Events round the first `apps` apps of each hub, each with a memory figure of its own; answered with the moment of the
   * first. `perSecond`: not faster than that.
   */
  v.object({
    do: v.literal('burst'),
    events: count,
    apps: count,
    from: count,
    tell: v.boolean(),
    perSecond: v.optional(count),
  }),
])
export type HubRequest = v.InferOutput<typeof HUB_REQUEST>

export const HUB_ANSWER = v.object({ result: v.unknown() })
export type HubAnswer = v.InferOutput<typeof HUB_ANSWER>
