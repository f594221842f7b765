/** The values of a command line, read strictly. */
import * as v from 'valibot'
import { fromText } from '../config/schemas.ts'

/** A command line that cannot be understood: tell it and exit with 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export class Flags {
  readonly #values: ReadonlyMap<string, readonly string[]>
  /** What stands for itself and not after an option, in the order of the command's table. */
  readonly positionals: readonly string[]

  constructor(values: ReadonlyMap<string, readonly string[]>, positionals: readonly string[] = []) {
    this.#values = values
    this.positionals = positionals
  }

  all(name: string): readonly string[] {
    return this.#values.get(name) ?? []
  }

  has(name: string): boolean {
    return this.#values.has(name)
  }

  text(name: string): string | undefined {
    return this.#values.get(name)?.[0]
  }

  required(name: string): string {
    const text = this.text(name)
    if (text === undefined) throw new UsageError(`--${name} is missing`)
    return text
  }

  /** One or more. */
  requiredAll(name: string): readonly string[] {
    this.required(name)
    return this.all(name)
  }

  integer(name: string, minimum: number, maximum: number): number | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (value >= minimum && value <= maximum) return value
    throw new UsageError(`--${name}: expected a whole number from ${minimum} to ${maximum}`)
  }

  /** A value as one would write it in an environment variable. */
  parsed<S extends v.GenericSchema>(name: string, schema: S): v.InferOutput<S> | undefined {
    return this.parsedAll(name, schema)[0]
  }

  /** Each value of an option that may be given several times. */
  parsedAll<S extends v.GenericSchema>(name: string, schema: S): readonly v.InferOutput<S>[] {
    return this.all(name).map((text) => {
      const result = v.safeParse(schema, fromText(schema, text))
      if (result.success) return result.output
      throw new UsageError(`--${name}: ${result.issues[0].message}`)
    })
  }

  choice<const T extends string>(name: string, values: readonly T[]): T | undefined {
    const text = this.text(name)
    const found = values.find((value) => value === text)
    if (text === undefined || found !== undefined) return found
    throw new UsageError(`--${name}: expected one of ${values.join(', ')}`)
  }
}
