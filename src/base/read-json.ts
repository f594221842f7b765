/** JSON that somebody else wrote, as what a schema says of it. */
import * as v from 'valibot'

/** `undefined` for what is no JSON, or does not fit. */
export function readJson<S extends v.GenericSchema>(schema: S, text: string): v.InferOutput<S> | undefined {
  try {
    const result = v.safeParse(schema, JSON.parse(text))
    return result.success ? result.output : undefined
  } catch {
    return undefined
  }
}
