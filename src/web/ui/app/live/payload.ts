/** Text from the wire → checked values, by the schemas of the interface. */
import * as v from 'valibot'
import { type Payload, PUBLICATIONS, type PublicationName } from '../../../../contract/publications.ts'
import { EVENT, FAILURE, SUCCESS } from '../../../../contract/schemas.ts'

/** The value, or `undefined` if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The value of a topic; `undefined` for a payload that its schema refuses. */
export function readPayload<N extends PublicationName>(name: N, payload: string): Payload<N> | undefined {
  const row = PUBLICATIONS[name]
  const value = 'text' in row ? payload : parseJson(payload)
  const schema: (typeof PUBLICATIONS)[N]['schema'] = row.schema
  const read = v.safeParse(schema, value)
  return read.success ? read.output : undefined
}

const ANSWER = v.variant('ok', [SUCCESS, FAILURE])
export type Answer = v.InferOutput<typeof ANSWER>

export function readAnswer(value: unknown): Answer | undefined {
  const read = v.safeParse(ANSWER, value)
  return read.success ? read.output : undefined
}

export type BridgeEvent = v.InferOutput<typeof EVENT>

export function readEvent(value: unknown): BridgeEvent | undefined {
  const read = v.safeParse(EVENT, value)
  return read.success ? read.output : undefined
}
