/** Options of former versions. */
import * as v from 'valibot'
import { type Reading, subjectOf } from './read.ts'
import type { Source } from './sources.ts'
import { environmentName } from './table.ts'

interface Removed {
  readonly schema: v.GenericSchema
  /** A value that asked for what is so now: it gets a warning only. */
  readonly harmless?: unknown
  /** Since when the option is gone, and what to do instead. */
  readonly text: string
}

const NO_WEBSOCKET = 'the embedded broker has no WebSocket since 0.3.0'
const REMEDY = 'remove the option; for MQTT over WebSocket, set mqtt.url to a broker that has it, such as Mosquitto'

const REMOVED: Readonly<Record<string, Removed>> = {
  'mqtt.embedded.ws_port': { schema: v.number(), harmless: 0, text: `${NO_WEBSOCKET}; ${REMEDY}` },
  'mqtt.embedded.ws_origins': { schema: v.array(v.string()), text: `${NO_WEBSOCKET}; ${REMEDY}` },
}

const VARIABLES = Object.keys(REMOVED).map(environmentName)

export const isRemoved = (path: string): boolean => Object.hasOwn(REMOVED, path)
export const isRemovedVariable = (name: string): boolean => VARIABLES.includes(name)

/** Refuses the options of former versions, in the file and in the environment. */
export function checkRemoved(sources: readonly Source[], { mistakes, warnings }: Reading): void {
  for (const [path, { schema, harmless, text }] of Object.entries(REMOVED)) {
    for (const source of sources) {
      const found = source.find(path, schema)
      if (found === undefined) continue
      if (harmless !== undefined && found.raw === harmless) warnings.push(`${subjectOf(found)}: ${text}`)
      else mistakes.add(subjectOf(found), text)
    }
  }
}
