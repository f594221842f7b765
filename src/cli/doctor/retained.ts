/** Finds evidence of other clients: Home Assistant, members of a fleet, or a bridge with the same base topic. */
import * as v from 'valibot'
import { type Clock, within } from '../../base/clock.ts'
import { readJson } from '../../base/read-json.ts'
import { listed } from '../../base/text.ts'
import type { Membership } from '../../cluster/fleet.ts'
import { type Config, options } from '../../config/options.ts'
import { parseDiscoveryTopic } from '../../contract/discovery.ts'
import { BRIDGE_INFO, FLEET } from '../../contract/schemas.ts'
import type { Topics } from '../../contract/topics.ts'
import type { Connection } from '../../mqtt/connection.ts'
import { about, counted, type Finding } from './finding.ts'

/** Retained payloads by topic. */
type RetainedMessages = ReadonlyMap<string, string>

const WAYS = { static: 'by number', leases: 'by leases' } as const

/** Compares this configuration with its running fleet. @param topics the topics of a member with this configuration */
export function examineFleet(messages: RetainedMessages, topics: Topics, membership: Membership, hubs: Config['hubs']) {
  const { ok, note, problem } = about('fleet')
  const { mode, member } = membership
  const own = messages.get(topics.of('bridgeState', {}))
  const state = messages.get(topics.availability)
  const fleet = readJson(FLEET, messages.get(topics.of('fleet', {})) ?? '')
  const findings: Finding[] = []
  const presence = (what: string, is: string, more = '') =>
    is === 'online' ? ok(`${what} is online${more}`) : note(`${what} is offline${more}`)
  if (own !== undefined) findings.push(presence(`the member ${member}`, own))
  if (state === undefined) return findings
  const count = fleet === undefined ? '' : `, with ${counted(fleet.count, 'member')}`
  findings.push(presence(`the fleet with the base topic ${topics.base}`, state, count))
  // The retained messages of a stopped fleet do not apply to the next fleet.
  if (state !== 'online' || fleet === undefined) return findings
  // Report a different configuration, because two members could then claim the same hub.
  if (fleet.mode !== mode) {
    const text = `its members share the hubs ${WAYS[fleet.mode]}, this configuration ${WAYS[mode]}`
    findings.push(problem(text, 'give all members the same configuration, and restart them'))
  } else if (mode !== 'leases' && fleet.count !== membership.count) {
    const text = `its members use a count of ${fleet.count}, this configuration ${membership.count}`
    findings.push(problem(text, 'set the same count for all members, and restart them'))
  }
  const away = Object.keys(fleet.members).filter((name) => messages.get(topics.memberState(name)) !== 'online')
  if (away.length > 0) {
    const remedy =
      'start these members; check their brokers and mqtt.base_topic; if they are of another fleet, give each its own fleet.bucket'
    const text = `members that are not online here, or that access rules hide: ${listed(away, MAX_NAMED)}`
    findings.push(problem(text, remedy, away))
  }
  const members = membersOnline(messages, topics)
  // If numbered members use different counts, the retained count is unreliable, so compare the number of members.
  if (mode !== 'leases' && members.length > Math.min(fleet.count, membership.count)) {
    const text = `${members.length} members are online, and not all of them use that count`
    findings.push(problem(text, 'give all members the same fleet.count, and restart them'))
  }
  return members.length < fleet.count ? findings : [...findings, ...compareHubs(members, hubs)]
}

function membersOnline(messages: RetainedMessages, topics: Topics) {
  return [...messages].flatMap(([topic, payload]) => {
    const { name, member = '' } = topics.parseMember(topic) ?? {}
    if (name !== 'bridgeInfo' || messages.get(topics.memberState(member)) !== 'online') return []
    return readJson(INFO, payload) ?? []
  })
}

/** Compares the hubs of this configuration with those that the members serve. */
function compareHubs(members: ReturnType<typeof membersOnline>, hubs: Config['hubs']): Finding[] {
  const own = here(hubs)
  const its = members.flatMap((member) => there(member.hubs))
  const without = (some: readonly Hub[], others: readonly Hub[]) => {
    const known = new Set(others.map(String))
    return some.filter((hub) => !known.has(String(hub)))
  }
  const report = (text: string, hubs: readonly Hub[]) => {
    if (hubs.length === 0) return []
    const { shown, names } = named(hubs)
    const remedy = 'give all members the same hubs and the same number of members, and restart them'
    return [about('fleet').problem(`${text}: ${shown}`, remedy, names)]
  }
  const twice = its.filter(([name], i) => its.findIndex(([other]) => other === name) < i)
  return [
    ...report('two members serve the same hub, unless it is being handed over', twice),
    ...report('its members serve hubs that this configuration does not have', without(its, own)),
    ...report('no member serves a hub of this configuration, unless it is being handed over', without(own, its)),
  ]
}

/** The schema of `bridge/info`, which here accepts additional keys, because later versions may send them. */
const INFO = v.object(BRIDGE_INFO.entries)
type Served = v.InferOutput<typeof INFO>['hubs']
/** Maximum number of hubs named in a finding, because a fleet may have a thousand hubs. */
const MAX_NAMED = 5

/** Replaces a string that is too long to be a real value. */
const short = (text: string) => (text.length > 100 ? '…' : text)

type Hub = readonly [name: string, host: string]
const here = (hubs: Config['hubs']) => Object.entries(hubs).map(([name, { url }]): Hub => [name, new URL(url).host])
const there = (hubs: Served) => Object.entries(hubs).map(([name, { url_host }]): Hub => [name, url_host])

/** Lists hubs as text; `names` contains the names and addresses in the text. */
function named(hubs: readonly Hub[]) {
  const few = hubs.slice(0, MAX_NAMED)
  const more = hubs.length > MAX_NAMED ? ` and ${hubs.length - MAX_NAMED} more` : ''
  const shown = few.map(([name, host]) => short(`${name} at ${host}`)).join(', ') || 'no hub'
  return { shown: shown + more, names: few.flat() }
}

/** Finds a running bridge with the same base topic, and compares its hubs with the configured hubs. */
export function examineOther(messages: RetainedMessages, topics: Topics, { hubs }: Config): Finding[] {
  const { ok, note, problem } = about('broker')
  const state = messages.get(topics.of('bridgeState', {}))
  const at = `with the base topic ${topics.base}`
  if (state === 'offline') return [ok(`no bridge ${at} is online; one has used this broker before`)]
  if (state !== 'online') return []
  const members = membersOnline(messages, topics)
  const fleet = readJson(FLEET, messages.get(topics.of('fleet', {})) ?? '')
  const info = readJson(INFO, messages.get(topics.of('bridgeInfo', {})) ?? '')
  if (members.length > 0 || (info === undefined && fleet !== undefined)) {
    const { shown, names } = named(members.flatMap((member) => there(member.hubs)))
    const since = members.map(({ started_at }) => started_at).sort()
    const versions = [...new Set(members.map(({ version }) => short(version)))].sort().join(', ')
    const who = members.length > 0 ? `: version ${versions}, since ${short(since[0] ?? '')}, with ${shown}` : ''
    const text = `a fleet of ${counted(fleet?.count ?? members.length, 'member')} ${at} is online${who}`
    const remedy = 'to join it, give this bridge the configuration of its members; otherwise its own mqtt.base_topic'
    return [problem(text, remedy, names)]
  }
  if (info === undefined) return [note(`a bridge ${at} is online, and its hubs are unknown`)]
  const own = here(hubs)
  const its = there(info.hubs)
  const { shown, names } = named(its)
  const who = `version ${short(info.version)}, since ${short(info.started_at)}, with ${shown}`
  if (own.map(String).sort().join() === its.map(String).sort().join()) return [ok(`the bridge ${at} is online: ${who}`)]
  const remedy =
    'if it is this bridge with its previous configuration: reload or restart it; otherwise stop one of the two, or change its mqtt.base_topic'
  return [problem(`a bridge ${at} with other hubs than this configuration is online: ${who}`, remedy, names)]
}

const ANSWER_MS = 2_000

const REMEDY =
  'if Home Assistant shows no devices: set discovery.prefix to that of its MQTT integration; without Home Assistant: discovery.format: off'

/**
 * Checks for Home Assistant with an empty message, which removes a sensor that does not exist. Under MQTT 5, the broker
 * reports whether any client received it. Bridges do not subscribe to sensors. Must be called before this client
 * subscribes to anything.
 */
export async function checkForListeners(connection: Connection, { format, prefix }: Config['discovery'], clock: Clock) {
  if (format === 'off') return
  if (connection.protocol === '5') {
    const { promise: answered, resolve } = Promise.withResolvers<void>()
    connection.publish(`${prefix}/sensor/hub2mqtt--doctor/config`, '', { qos: 1 }, () => resolve())
    return await within(clock, ANSWER_MS, answered)
  }
  // MQTT 3.1.1 does not report whether a client received a message, but retained messages may reveal other programs.
  for (const filter of [`${prefix}/+/+/config`, `${prefix}/+/+/+/config`])
    await connection.subscribe(filter, { qos: 1 })
}

/** @param isReceived whether a client received the message; `undefined` if the broker does not report this */
export function examineListeners(
  messages: ReadonlyMap<string, string>,
  { format, prefix, birth_topic }: Config['discovery'],
  isReceived: boolean | undefined,
): Finding[] {
  if (format === 'off' || messages.has(birth_topic) || isReceived) return []
  const { note } = about('broker')
  if (isReceived === false) return [note(`no client receives the devices for Home Assistant below ${prefix}`, REMEDY)]
  // Do not warn about the default prefix, because it is usually right even without evidence of Home Assistant.
  if (prefix === options['discovery.prefix'].default) return []
  const isOther = (topic: string) => topic.startsWith(`${prefix}/`) && parseDiscoveryTopic(topic) === undefined
  if (messages.keys().some(isOther)) return []
  const text = `no sign of Home Assistant below ${prefix}: no birth message, no other device`
  return [note(text, REMEDY)]
}
