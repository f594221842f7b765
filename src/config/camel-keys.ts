/** A slice of the configuration as the options of a part of the program: `poll_interval` is `pollInterval` there. */

type Camel<Key> = Key extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Key

/** The same values under camel-case keys; what is `null` is `undefined`, as for an option left out. */
export type CamelKeys<T> = {
  readonly [Key in keyof T as Camel<Key> & string]: null extends T[Key] ? Exclude<T[Key], null> | undefined : T[Key]
}

/** Only the keys of the object itself change, not those of objects in it. */
export function camelKeys<T extends object>(slice: T): CamelKeys<T> {
  const entries = Object.entries(slice).map(([key, value]) => {
    return [key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), value ?? undefined]
  })
  // The keys are changed here just as in the type.
  return Object.fromEntries(entries) as CamelKeys<T>
}
