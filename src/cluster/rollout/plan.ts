/** From an order to a rollout: which apps it is for, and what is read back of earlier ones. */
import * as v from 'valibot'
import { readJson } from '../../base/read-json.ts'
import { CommandError } from '../../contract/errors.ts'
import { durationMs } from '../../contract/payload.ts'
import { appFilter } from '../../contract/permissions.ts'
import { PUBLICATIONS } from '../../contract/publications.ts'
import { MAX_ROLLOUT_NAME, type Rollout, type RolloutOrder, type RolloutStep } from '../../contract/rollout.ts'
import { APP, ROLLOUT } from '../../contract/schemas.ts'
import type { Topics } from '../../contract/topics.ts'

/** Steps of one rollout. */
const MAX_STEPS = 2_000
/** Its record at the beginning; with its failures it stays under the limits that brokers have by default. */
const MAX_BYTES = 64 * 1024

const DEFAULTS = { hubs: '*', canary: 1, batch: 10, pause: '30s', stop_after_failures: 1 } as const

/** What stands directly below a hub's or the base topic: who subscribes to `<base>/+/state` must not meet a rollout there. */
const RESERVED: ReadonlySet<string> = new Set([
  ...Object.values(PUBLICATIONS).flatMap(({ topic }) => /^\{base\}\/\{hub\}\/([a-z-]+)$/.exec(topic)?.[1] ?? []),
  'app',
  'cmd',
  'result',
])

/** An app that the broker holds. */
export interface KnownApp extends RolloutStep {
  /** `false`: it is off, and does not run. */
  readonly enabled: boolean | null
}

/** What of an app's payload decides. A later version may say more. */
const SEEN_APP = v.pick(v.object(APP.entries), ['state', 'crashed', 'crash_count', 'enabled'])
export type SeenApp = v.InferOutput<typeof SEEN_APP>

/** The payload of an app's topic; `undefined`: it is none. */
export function readApp(text: string): SeenApp | undefined {
  return readJson(SEEN_APP, text)
}

/** @throws CommandError */
export function checkName(transaction: string): void {
  if (transaction.length <= MAX_ROLLOUT_NAME && !RESERVED.has(transaction)) return
  throw new CommandError(
    'invalid_payload',
    `transaction: expected a name of at most ${MAX_ROLLOUT_NAME} characters, other than ${[...RESERVED].join(', ')}.`,
  )
}

/** @throws CommandError if there is nothing to do, or too much */
export function plan(transaction: string, order: RolloutOrder, apps: Iterable<KnownApp>, now: string): Rollout {
  const wanted = withDefaults(order)
  durationMs('pause', wanted.pause)
  const isApp = appFilter([wanted.app], [])
  const isHub = appFilter([wanted.hubs], [])
  const hubsOf = new Map<string, string[]>()
  let total = 0
  for (const { hub, app, enabled } of apps) {
    // What is off on purpose has nothing to restart.
    if (!isApp(app) || !isHub(hub) || (wanted.command === 'restart' && enabled === false)) continue
    const hubs = hubsOf.get(app) ?? []
    hubsOf.set(app, hubs)
    hubs.push(hub)
    total += 1
  }
  if (total === 0) throw new CommandError('unknown_app', 'No app on any hub matches.')
  const targets = [...hubsOf].sort(([one], [other]) => (one < other ? -1 : 1))
  const rollout: Rollout = {
    transaction,
    ...wanted,
    ...{ state: 'running', reason: null, started_at: now, updated_at: now },
    ...{ total, done: 0, failed: [], current: [] },
    targets: targets.map(([app, hubs]) => ({ app, hubs: hubs.sort() })),
  }
  if (total > MAX_STEPS || Buffer.byteLength(JSON.stringify(rollout)) > MAX_BYTES) {
    throw new CommandError(
      'invalid_payload',
      `${total} apps on hubs match, more than one rollout takes: narrow hubs or app.`,
    )
  }
  return rollout
}

/** Whether an order is the one that began a rollout. */
export function isOrderOf(rollout: Rollout, order: RolloutOrder): boolean {
  const wanted = withDefaults(order)
  const keys = ['command', 'app', 'hubs', 'canary', 'batch', 'pause', 'stop_after_failures'] as const
  return keys.every((key) => rollout[key] === wanted[key])
}

function withDefaults({ command, app, ...rest }: RolloutOrder) {
  const { hubs, canary, batch, pause, stop_after_failures } = rest
  return {
    command,
    app,
    hubs: hubs ?? DEFAULTS.hubs,
    canary: canary ?? DEFAULTS.canary,
    batch: batch ?? DEFAULTS.batch,
    pause: pause ?? DEFAULTS.pause,
    stop_after_failures: stop_after_failures ?? DEFAULTS.stop_after_failures,
  }
}

/** A record on the broker; `undefined` for somebody else's words, and where its numbers or its topic do not fit it. */
export function readRollout(topics: Topics, topic: string, text: string): Rollout | undefined {
  const found = readJson(ROLLOUT, text)
  if (found === undefined || topics.of('rollout', found) !== topic) return undefined
  const { total, done, failed, current, targets, canary, batch } = found
  const steps = targets.reduce((sum, { hubs }) => sum + hubs.length, 0)
  const known = new Set(targets.flatMap(({ app, hubs }) => hubs.map((hub) => JSON.stringify([hub, app]))))
  const named = [...failed, ...current].map(({ hub, app }) => JSON.stringify([hub, app]))
  const fits =
    steps === total &&
    total > 0 &&
    total <= MAX_STEPS &&
    known.size === total &&
    new Set(named).size === named.length &&
    named.every((one) => known.has(one)) &&
    done + named.length <= total &&
    canary > 0 &&
    batch > 0 &&
    isDuration(found.pause)
  return fits ? found : undefined
}

function isDuration(text: string): boolean {
  try {
    return durationMs('pause', text) > 0
  } catch {
    return false
  }
}
