/** The recorded messages that subscribers must receive. */
import { readFileSync } from 'node:fs'
import type { BrokerKind } from '../support/brokers.ts'
import { type Exceptions, underMqtt3 } from './mqtt3.ts'
import type { Recording } from './record.ts'

/** The recording for MQTT 5, with Mosquitto. */
export const GOLDEN = new URL('golden-mosquitto.json', import.meta.url)
/** The messages for MQTT 3.1.1, with the embedded broker, that `mqtt3.ts` cannot derive from MQTT 5. */
export const EXCEPTIONS = new URL('mqtt3-exceptions.json', import.meta.url)

export function readRecording(file: string | URL): Recording {
  return JSON.parse(readFileSync(file, 'utf8'))
}

export function expected(kind: BrokerKind): Recording {
  const golden = readRecording(GOLDEN)
  if (kind === 'mosquitto') return golden
  const exceptions: Exceptions = JSON.parse(readFileSync(EXCEPTIONS, 'utf8'))
  return underMqtt3(golden, exceptions)
}
