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

/** The differences of a case from a single bridge that has read its only hub, `home`. */
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
    topics: createTopics('hub2mqtt', member),
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
const OURS = message('hub2mqtt')

const DEVICE = 'homeassistant/device/hub2mqtt--H1--app/config'
const COMPONENT = 'homeassistant/sensor/hub2mqtt/hub2mqtt--H1--app--cpu/config'
const BY_NAME = 'homeassistant/device/hub2mqtt---20home--app/config'
const OF_GONE_HUB = 'homeassistant/device/hub2mqtt--H2--app/config'
const PUBLISHED = { devices: ['hub2mqtt--H1--app'] }

type Outcome =
  | `ours ${'keep' | 'clear' | 'wait'} ${'table' | 'discovery' | 'connection' | 'rollout'}`
  | 'peer'
  | 'foreign'
type Row = readonly [promise: string, topic: string, payload: string | undefined, state: Case, outcome: Outcome]

const outcomeOf = ({ whose, verdict, writer }: Ownership) =>
  whose === 'ours' ? `${whose} ${verdict} ${writer}` : whose

const ROWS: Readonly<Record<string, readonly Row[]>> = {
  'of the bridge': [
    ['its state is written by the connection', 'hub2mqtt/bridge/state', 'offline', {}, 'ours keep connection'],
    ['its information stays, because it names the previous hubs', 'hub2mqtt/bridge/info', '{}', {}, 'ours keep table'],
    ['a row that is not configured is cleared', 'hub2mqtt/bridge/log-level', 'info', {}, 'ours clear table'],
    ['the topic of a former fleet is cleared', 'hub2mqtt/fleet', '{}', {}, 'ours clear table'],
    ['the topic of an existing fleet stays', 'hub2mqtt/fleet', '{}', { member: 'a' }, 'ours keep table'],
    ['a retained presence message is cleared', 'hub2mqtt/bridge/presence', '{}', {}, 'ours clear table'],
    ['a retained command is foreign', 'hub2mqtt/home/cmd/refresh', '{}', {}, 'foreign'],
    ['a retained command for the bridge is foreign', 'hub2mqtt/bridge/cmd/log-level', 'debug', {}, 'foreign'],
    ['another first level is foreign', 'other/bridge/state', 'online', {}, 'foreign'],
  ],
  'of a hub': [
    ['a removed app is cleared', 'hub2mqtt/home/app/ghost', '{}', {}, 'ours clear table'],
    ['a row of the hub that is not held is cleared', 'hub2mqtt/home/guard-memory', '{}', {}, 'ours clear table'],
    ['a state of another program is foreign', 'hub2mqtt/kitchen/state', 'on', {}, 'foreign'],
    ['an app of another program is foreign', 'hub2mqtt/kitchen/app/lamp', '{}', {}, 'foreign'],
    ['events of another program are foreign', 'hub2mqtt/kitchen/event', '{}', {}, 'foreign'],
    ['a former hub is cleared', 'hub2mqtt/attic/state', 'online', { former: ['attic'] }, 'ours clear table'],
    [
      'a former app too',
      'hub2mqtt/attic/app/x',
      '{}',
      { former: ['attic'], pendingReads: ['home'] },
      'ours clear table',
    ],
    [
      'a former hub that is configured again waits for its owner',
      'hub2mqtt/attic/state',
      'online',
      { former: ['attic'], configured: ['home', 'attic'] },
      'peer',
    ],
    ['nothing is cleared before the list was read', 'hub2mqtt/home/app/x', '{}', { hub: UNREAD }, 'ours wait table'],
    ['nothing is cleared with half a list', 'hub2mqtt/home/app/x', '{}', { hub: HALF }, 'ours wait table'],
    ['a hub is not cleared with half a list', 'hub2mqtt/home/state', 'online', { hub: HALF }, 'ours wait table'],
    ['a hub is not cleared without an identity', 'hub2mqtt/home/state', 'online', { hub: NAMELESS }, 'ours wait table'],
    ['apps do not wait for the identity', 'hub2mqtt/home/app/x', '{}', { hub: NAMELESS }, 'ours clear table'],
    [
      'an app waits for a list to be read again',
      'hub2mqtt/home/app/x',
      '{}',
      { pendingReads: ['home'] },
      'ours wait table',
    ],
    [
      'a hub waits for a list to be read again',
      'hub2mqtt/home/summary',
      '{}',
      { pendingReads: ['home'] },
      'ours wait table',
    ],
    [
      'the list of another hub does not matter',
      'hub2mqtt/home/app/x',
      '{}',
      { pendingReads: ['attic'] },
      'ours clear table',
    ],
    ['an app waits for a second list', 'hub2mqtt/home/app/x', '{}', { fresh: ['home'] }, 'ours wait table'],
    ['other rows need no second list', 'hub2mqtt/home/summary', '{}', { fresh: ['home'] }, 'ours clear table'],
    [
      'a published setting is read before it is cleared',
      'hub2mqtt/home/app/x/setting/mode',
      '1',
      { settings: ['x/mode'] },
      'ours keep table',
    ],
    [
      'a setting that is not published is cleared',
      'hub2mqtt/home/app/x/setting/pin',
      '1',
      { settings: ['x/mode'] },
      'ours clear table',
    ],
    [
      'a setting that is not published is cleared before the list was read',
      'hub2mqtt/home/app/x/setting/pin',
      '1',
      { hub: UNREAD, settings: ['x/mode'] },
      'ours clear table',
    ],
    [
      'a published setting stays before the list was read',
      'hub2mqtt/home/app/x/setting/mode',
      '1',
      { hub: UNREAD, settings: ['x/mode'] },
      'ours keep table',
    ],
    [
      'a retained event is cleared, whatever is known of the hub',
      'hub2mqtt/home/app/x/event',
      '{}',
      { hub: UNREAD, pendingReads: ['home'] },
      'ours clear table',
    ],
    ['a message too large to keep is judged by its topic', 'hub2mqtt/home/app/x', undefined, {}, 'ours clear table'],
  ],
  'of other members': [
    ['their states', 'hub2mqtt/bridge/b/state', 'online', { member: 'a' }, 'peer'],
    ['their information', 'hub2mqtt/bridge/b/info', '{}', { member: 'a', former: ['attic'] }, 'peer'],
    ['messages that a single bridge finds', 'hub2mqtt/bridge/b/state', 'offline', {}, 'peer'],
    ['the state of all', 'hub2mqtt/bridge/state', 'offline', { member: 'a' }, 'peer'],
    ['the own state is not theirs', 'hub2mqtt/bridge/a/state', 'offline', { member: 'a' }, 'ours keep connection'],
    ['names that no member has', 'hub2mqtt/bridge/Upper/state', 'online', { member: 'a' }, 'foreign'],
    ['their hubs', 'hub2mqtt/attic/app/x', '{}', { member: 'a', configured: ['home', 'attic'] }, 'peer'],
    ['events of their hubs', 'hub2mqtt/attic/event', '{}', { member: 'a', configured: ['home', 'attic'] }, 'peer'],
    ['a hub that only their information names', 'hub2mqtt/attic/app/x', '{}', { member: 'a' }, 'foreign'],
    ['devices of their hubs', OF_GONE_HUB, OURS, { member: 'a' }, 'peer'],
    ['a rollout that this process does not answer for', 'hub2mqtt/rollout/x', '{}', {}, 'peer'],
    [
      'a rollout that this process answers for is not theirs',
      'hub2mqtt/rollout/x',
      '{}',
      { rollouts: ['hub2mqtt/rollout/x'] },
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
      'devices wait while any list is to be read again',
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
      'messages by an id wait: a hub without identity may have it',
      DEVICE,
      OURS,
      { hub: ANONYMOUS },
      'ours wait discovery',
    ],
    ['messages by name of a bridge with another base topic', BY_NAME, message('other'), {}, 'foreign'],
    ['messages wait while a list was not read', OF_GONE_HUB, OURS, { hub: HALF }, 'ours wait discovery'],
    ['messages of another bridge are foreign', OF_GONE_HUB, message('other'), {}, 'foreign'],
    ['messages of another program are foreign', DEVICE, message('hub2mqtt', 'zigbee2mqtt'), {}, 'foreign'],
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
