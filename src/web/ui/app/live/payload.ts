/** Validates payloads and answers from the server with their schemas, because they are untrusted. */
import * as v from 'valibot'
import { readJson } from '../../../../base/read-json.ts'
import { type Payload, PUBLICATIONS, type PublicationName } from '../../../../contract/publications.ts'
import { FAILURE, SUCCESS } from '../../../../contract/schemas.ts'

/** Validates a value. Returns `undefined` if the value does not match the schema. */
export function read<S extends v.GenericSchema>(schema: S, value: unknown): v.InferOutput<S> | undefined {
  const result = v.safeParse(schema, value)
  return result.success ? result.output : undefined
}

/** Parses a payload. Returns `undefined` if it is missing or does not match the schema of the topic. */
export function readPayload<N extends PublicationName>(name: N, payload: string | null): Payload<N> | undefined {
  if (payload === null) return undefined
  const row = PUBLICATIONS[name]
  const schema: (typeof PUBLICATIONS)[N]['schema'] = row.schema
  return 'text' in row ? read(schema, payload) : readJson(schema, payload)
}

export const ANSWER = v.variant('ok', [SUCCESS, FAILURE])
export type Answer = v.InferOutput<typeof ANSWER>
