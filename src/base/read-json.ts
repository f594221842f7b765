import * as v from 'valibot'

/** Returns `undefined` if the text is not JSON or does not match the schema. */
export function readJson<S extends v.GenericSchema>(schema: S, text: string): v.InferOutput<S> | undefined {
  try {
    const result = v.safeParse(schema, JSON.parse(text))
    return result.success ? result.output : undefined
  } catch {
    return undefined
  }
}
