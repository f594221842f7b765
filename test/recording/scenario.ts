import type { BrokerKind } from '../support/brokers.ts'
import { configOf, startHubs } from './config.ts'
import type { Stage } from './record.ts'
import { commands } from './stages/commands.ts'
import { events } from './stages/events.ts'
import { others } from './stages/others.ts'
import { outages } from './stages/outages.ts'
import { refusals } from './stages/refusals.ts'
import { reloads } from './stages/reloads.ts'
import { restarts } from './stages/restarts.ts'
import { start } from './stages/start.ts'
import { Theatre } from './theatre.ts'

export async function record(kind: BrokerKind): Promise<readonly Stage[]> {
  const hubs = await startHubs()
  await using theatre = await Theatre.open(kind, hubs)
  const url = `mqtt://127.0.0.1:${theatre.line.port}`
  const first = (changes: object = {}) => configOf(url, hubs, changes)
  const later = (changes: object = {}) => configOf(url, hubs, changes, 'new-key')
  await start(theatre, first())
  await commands(theatre)
  await refusals(theatre)
  await events(theatre)
  await outages(theatre, (key) => configOf(url, hubs, {}, key))
  await reloads(theatre, later)
  await others(theatre)
  await restarts(theatre, later)
  return theatre.recorded
}
