/** Whether a bridge with the same base topic is online, and whether it serves what is configured here. */
import * as v from 'valibot'
import { readJson } from '../../base/read-json.ts'
import type { Config } from '../../config/options.ts'
import { BRIDGE_INFO } from '../../contract/schemas.ts'
import type { Topics } from '../../contract/topics.ts'
import { about, type Finding } from './finding.ts'

const { ok, note, problem } = about('broker')

/** A later version may say more. */
const INFO = v.object(BRIDGE_INFO.entries)
/** Of its hubs: there may be a thousand. */
const MAX_NAMED = 5

/** What a bridge says of itself is shorter. */
const short = (text: string) => (text.length > 100 ? '…' : text)

/** `held`: what is retained, by topic. */
export function examineOther(held: ReadonlyMap<string, string>, topics: Topics, { hubs }: Config): Finding[] {
  const state = held.get(topics.of('bridgeState', {}))
  const at = `with the base topic ${topics.base}`
  if (state === 'offline') return [ok(`a bridge ${at} was here, and is offline`)]
  if (state !== 'online') return []
  const info = readJson(INFO, held.get(topics.of('bridgeInfo', {})) ?? '')
  if (info === undefined) return [note(`a bridge ${at} is online, and does not say what it serves`)]
  const own = Object.entries(hubs).map(([name, { url }]) => `${name} at ${new URL(url).host}`)
  const its = Object.entries(info.hubs).map(([name, { url_host }]) => `${name} at ${url_host}`)
  const names = Object.entries(info.hubs)
    .slice(0, MAX_NAMED)
    .flatMap(([name, { url_host }]) => [name, url_host])
  const more = its.length > MAX_NAMED ? ` and ${its.length - MAX_NAMED} more` : ''
  const hubsOf = its.slice(0, MAX_NAMED).map(short).join(', ') || 'no hub'
  const who = `version ${short(info.version)}, since ${short(info.started_at)}, with ${hubsOf}${more}`
  if (own.sort().join() === its.sort().join()) return [ok(`the bridge ${at} is online: ${who}`)]
  const remedy =
    'if it is this one before a change: reload or restart it; else stop one of the two, or give it its own mqtt.base_topic'
  return [problem(`a bridge ${at} is online that serves other hubs than this configuration: ${who}`, remedy, names)]
}
