/** The recorded messages that subscribers must receive. */
import { readFileSync } from 'node:fs'
import type { BrokerKind } from '../support/brokers.ts'
import { type Exceptions, underMqtt3 } from './mqtt3.ts'
import { unpack } from './pack.ts'
import type { Stage } from './record.ts'

/** The recording for MQTT 5, with Mosquitto. */
export const GOLDEN = new URL('golden-mosquitto.json', import.meta.url)
/** The messages for MQTT 3.1.1, with the embedded broker, that `mqtt3.ts` cannot derive from MQTT 5. */
export const EXCEPTIONS = new URL('mqtt3-exceptions.json', import.meta.url)

export function expected(kind: BrokerKind): readonly Stage[] {
  const golden = unpack(JSON.parse(readFileSync(GOLDEN, 'utf8')))
  if (kind === 'mosquitto') return golden
  const exceptions: Exceptions = JSON.parse(readFileSync(EXCEPTIONS, 'utf8'))
  return underMqtt3(golden, exceptions)
}
