import { describe, expect, test } from 'vitest'
import { type Ownership, type OwnershipState, ownership } from '../../src/bridge/ownership.ts'
import { hubIdOf } from '../../src/contract/discovery.ts'
import { createTopics } from '../../src/contract/topics.ts'

const READ = { status: { id: 'H1', api: 'manager', reason: null }, apps: { complete: true } } as const
const UNREAD = { status: { id: null, api: null, reason: 'connecting' }, apps: { complete: false } } as const
const HALF = { status: { id: 'H1', api: 'manager', reason: null }, apps: { complete: false } } as const
/** The bridge has read the list, but not the hub's identity. */
const NAMELESS = { status: { id: null, api: null, reason: 'connecting' }, apps: { complete: true } } as const
/** The hub has answered without an identity. */
const ANONYMOUS = { status: { id: null, api: 'manager', reason: null }, apps: { complete: true } } as const

/** Overrides for one test case. The default is a single bridge that has read its only hub, `home`. */
interface Case {
  readonly hub?: OwnershipState['byId'] extends ReadonlyMap<unknown, infer H> ? H : never
  readonly member?: string
  readonly configured?: readonly string[]
  readonly served?: readonly string[]
  readonly former?: readonly string[]
  readonly pendingReads?: readonly string[]
  readonly fresh?: readonly string[]
  readonly rollouts?: readonly string[]
  readonly settings?: readonly string[]
  readonly prefixes?: readonly string[]
  /** Devices that are published in any format, or queued. */
  readonly devices?: readonly string[]
}

function stateOf({ hub = READ, member, served = ['home'], configured = ['home'], ...rest }: Case): OwnershipState {
  const { former = [], pendingReads = [], fresh = [], rollouts = [], settings = [], devices = [] } = rest
  const { prefixes = ['homeassistant'] } = rest
  const publishes = ({ app, name }: { readonly app: string; readonly name: string }) =>
    settings.includes(`${app}/${name}`)
  return {
    topics: createTopics('b', member),
    hubs: new Map(served.map((name) => [name, { hub }])),
    byId: new Map(served.map((name) => [hubIdOf(name, hub.status), hub])),
    states: new Map(served.map((name) => [name, { settings: { publishes } }])),
    live: { value: { hubs: Object.fromEntries(configured.map((name) => [name, {}])) } },
    isShared: member !== undefined,
    former: new Set(former),
    pendingReads: new Set(pendingReads),
    fresh: new Set(fresh),
    rollouts: { held: new Set(rollouts) },
    prefixes: { includes: (prefix) => prefixes.includes(prefix) },
    homeAssistant: { has: (prefix, objectId) => prefix === prefixes[0] && devices.includes(objectId) },
  }
}

const message = (base: string, origin = 'hub2mqtt') =>
  JSON.stringify({ origin: { name: origin }, availability: [{ topic: `${base}/bridge/state` }], components: {} })
const OURS = message('b')

const DEVICE = 'homeassistant/device/hub2mqtt--H1--app/config'
const COMPONENT = 'homeassistant/sensor/hub2mqtt/hub2mqtt--H1--app--cpu/config'
const BY_NAME = 'homeassistant/device/hub2mqtt---20home--app/config'
const OF_GONE_HUB = 'homeassistant/device/hub2mqtt--H2--app/config'
const PUBLISHED = { devices: ['hub2mqtt--H1--app'] }
const MODE = 'b/home/app/x/setting/mode'
const PIN = 'b/home/app/x/setting/pin'
const PUBLISHES = { settings: ['x/mode'] }
const ROLLOUT = 'b/rollout/x'

type Outcome =
  | `ours ${'keep' | 'clear' | 'wait'} ${'table' | 'discovery' | 'connection' | 'rollout'}`
  | 'peer'
  | 'foreign'
type Row = readonly [promise: string, topic: string, payload: string | undefined, state: Case, outcome: Outcome]

const outcomeOf = ({ whose, verdict, writer }: Ownership) =>
  whose === 'ours' ? `${whose} ${verdict} ${writer}` : whose

const ROWS: Readonly<Record<string, readonly Row[]>> = {
  'of the bridge': [
    ['its state is written by the connection', 'b/bridge/state', 'offline', {}, 'ours keep connection'],
    ['its information stays, because it names the previous hubs', 'b/bridge/info', '{}', {}, 'ours keep table'],
    ['a row that is not configured is cleared', 'b/bridge/log-level', 'info', {}, 'ours clear table'],
    ['the topic of a former fleet is cleared', 'b/fleet', '{}', {}, 'ours clear table'],
    ['the topic of an existing fleet stays', 'b/fleet', '{}', { member: 'a' }, 'ours keep table'],
    ['a retained presence message is cleared', 'b/bridge/presence', '{}', {}, 'ours clear table'],
    ['a retained command is foreign', 'b/home/cmd/refresh', '{}', {}, 'foreign'],
    ['a retained command for the bridge is foreign', 'b/bridge/cmd/log-level', 'debug', {}, 'foreign'],
    ['another first level is foreign', 'other/bridge/state', 'online', {}, 'foreign'],
  ],
  'of a hub': [
    ['a removed app is cleared', 'b/home/app/ghost', '{}', {}, 'ours clear table'],
    ['a row of the hub that is not held is cleared', 'b/home/guard-memory', '{}', {}, 'ours clear table'],
    ['a state of another program is foreign', 'b/kitchen/state', 'on', {}, 'foreign'],
    ['an app of another program is foreign', 'b/kitchen/app/lamp', '{}', {}, 'foreign'],
    ['events of another program are foreign', 'b/kitchen/event', '{}', {}, 'foreign'],
    ['a former hub is cleared', 'b/attic/state', 'online', { former: ['attic'] }, 'ours clear table'],
    ['a former app too', 'b/attic/app/x', '{}', { former: ['attic'], pendingReads: ['home'] }, 'ours clear table'],
    [
      'a former hub that is configured again waits for its owner',
      'b/attic/state',
      'online',
      { former: ['attic'], configured: ['home', 'attic'] },
      'peer',
    ],
    ['nothing is cleared before the list was read', 'b/home/app/x', '{}', { hub: UNREAD }, 'ours wait table'],
    ['nothing is cleared with half a list', 'b/home/app/x', '{}', { hub: HALF }, 'ours wait table'],
    ['a hub is not cleared with half a list', 'b/home/state', 'online', { hub: HALF }, 'ours wait table'],
    ['a hub is not cleared without an identity', 'b/home/state', 'online', { hub: NAMELESS }, 'ours wait table'],
    ['apps do not wait for the identity', 'b/home/app/x', '{}', { hub: NAMELESS }, 'ours clear table'],
    ['an app waits for a list to be read again', 'b/home/app/x', '{}', { pendingReads: ['home'] }, 'ours wait table'],
    ['a hub waits for a list to be read again', 'b/home/summary', '{}', { pendingReads: ['home'] }, 'ours wait table'],
    ['the list of another hub does not matter', 'b/home/app/x', '{}', { pendingReads: ['attic'] }, 'ours clear table'],
    ['an app waits for a second list', 'b/home/app/x', '{}', { fresh: ['home'] }, 'ours wait table'],
    ['other rows need no second list', 'b/home/summary', '{}', { fresh: ['home'] }, 'ours clear table'],
    ['a published setting is read before it is cleared', MODE, '1', PUBLISHES, 'ours keep table'],
    ['a setting that is not published is cleared', PIN, '1', PUBLISHES, 'ours clear table'],
    [
      'a setting that is not published is cleared before the list was read',
      PIN,
      '1',
      { hub: UNREAD, ...PUBLISHES },
      'ours clear table',
    ],
    ['a published setting stays before the list was read', MODE, '1', { hub: UNREAD, ...PUBLISHES }, 'ours keep table'],
    [
      'a retained event is cleared, whatever is known of the hub',
      'b/home/app/x/event',
      '{}',
      { hub: UNREAD, pendingReads: ['home'] },
      'ours clear table',
    ],
    ['a message too large to keep is judged by its topic', 'b/home/app/x', undefined, {}, 'ours clear table'],
  ],
  'of other members': [
    ['their states', 'b/bridge/b/state', 'online', { member: 'a' }, 'peer'],
    ['their information', 'b/bridge/b/info', '{}', { member: 'a', former: ['attic'] }, 'peer'],
    ['messages that a single bridge finds', 'b/bridge/b/state', 'offline', {}, 'peer'],
    ['the state of all', 'b/bridge/state', 'offline', { member: 'a' }, 'peer'],
    ['the own state is not theirs', 'b/bridge/a/state', 'offline', { member: 'a' }, 'ours keep connection'],
    ['names that no member has', 'b/bridge/Upper/state', 'online', { member: 'a' }, 'foreign'],
    ['their hubs', 'b/attic/app/x', '{}', { member: 'a', configured: ['home', 'attic'] }, 'peer'],
    ['events of their hubs', 'b/attic/event', '{}', { member: 'a', configured: ['home', 'attic'] }, 'peer'],
    ['a hub that only their information names', 'b/attic/app/x', '{}', { member: 'a' }, 'foreign'],
    ['devices of their hubs', OF_GONE_HUB, OURS, { member: 'a' }, 'peer'],
    ['a rollout that this process does not answer for', ROLLOUT, '{}', {}, 'peer'],
    [
      'a rollout that this process answers for is not theirs',
      ROLLOUT,
      '{}',
      { rollouts: [ROLLOUT] },
      'ours keep rollout',
    ],
  ],
  'for Home Assistant': [
    ['a device of a removed app is cleared', DEVICE, OURS, {}, 'ours clear discovery'],
    ['a component of a removed app is cleared', COMPONENT, OURS, {}, 'ours clear discovery'],
    ['a device that Home Assistant cleared waits', DEVICE, '', PUBLISHED, 'ours wait discovery'],
    ['a forged device waits', DEVICE, '{}', PUBLISHED, 'ours wait discovery'],
    ['the other format is migrated before it is cleared', COMPONENT, OURS, PUBLISHED, 'ours wait discovery'],
    [
      'devices of a renamed hub wait',
      DEVICE,
      OURS,
      { ...PUBLISHED, served: [], configured: [] },
      'ours wait discovery',
    ],
    ['nothing is cleared before the list was read', DEVICE, OURS, { hub: HALF }, 'ours wait discovery'],
    [
      'devices wait while any list must be read again',
      DEVICE,
      OURS,
      { pendingReads: ['attic'] },
      'ours wait discovery',
    ],
    ['devices of a removed hub are cleared', OF_GONE_HUB, OURS, {}, 'ours clear discovery'],
    ['devices wait while a hub has no identity', OF_GONE_HUB, OURS, { hub: NAMELESS }, 'ours wait discovery'],
    ['messages by name wait for the identity of the hub', BY_NAME, OURS, { hub: NAMELESS }, 'ours wait discovery'],
    ['a removed app of a hub without identity is cleared', BY_NAME, OURS, { hub: ANONYMOUS }, 'ours clear discovery'],
    [
      'a forged message of a hub without identity waits',
      BY_NAME,
      '{}',
      { hub: ANONYMOUS, devices: ['hub2mqtt---20home--app'] },
      'ours wait discovery',
    ],
    ['a removed hub without identity is cleared', BY_NAME, OURS, { served: ['den'] }, 'ours clear discovery'],
    ['messages by name are cleared when the identity is known', BY_NAME, OURS, {}, 'ours clear discovery'],
    [
      'a message by id waits: a hub without identity may have it',
      DEVICE,
      OURS,
      { hub: ANONYMOUS },
      'ours wait discovery',
    ],
    ['messages by name of a bridge with another base topic', BY_NAME, message('other'), {}, 'foreign'],
    ['messages wait while a list was not read', OF_GONE_HUB, OURS, { hub: HALF }, 'ours wait discovery'],
    ['messages of another bridge are foreign', OF_GONE_HUB, message('other'), {}, 'foreign'],
    ['messages of another program are foreign', DEVICE, message('b', 'zigbee2mqtt'), {}, 'foreign'],
    ['invalid messages are foreign', DEVICE, '{', {}, 'foreign'],
    ['devices of other programs are foreign', 'homeassistant/device/lamp/config', OURS, {}, 'foreign'],
    ['a prefix that was never used is foreign', DEVICE.replace('homeassistant', 'elsewhere'), OURS, {}, 'foreign'],
    [
      'a message under a former prefix is cleared if its device is published under the current one',
      DEVICE.replace('homeassistant', 'former'),
      OURS,
      { ...PUBLISHED, prefixes: ['homeassistant', 'former'] },
      'ours clear discovery',
    ],
    ['too large to keep, of a configured hub', DEVICE, undefined, {}, 'ours clear discovery'],
    ['too large to keep, of an unknown hub', OF_GONE_HUB, undefined, {}, 'foreign'],
  ],
}

describe.each(Object.entries(ROWS))('a retained message %s', (_, rows) => {
  test.each(rows)('%s: %s', (_promise, topic, payload, state, outcome) => {
    expect(outcomeOf(ownership(topic, payload, stateOf(state)))).toBe(outcome)
  })
})
