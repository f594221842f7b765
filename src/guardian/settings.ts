/** What configuration says of the guardian, and of one app. */
import type { Config } from '../config/options.ts'
import { appFilter } from '../contract/permissions.ts'
import { PROBES } from './probes.ts'

export type GuardConfig = Pick<Config, 'guard' | 'updates'>

/** Says of an app what a list of patterns says of it. */
export type Patterns = ReturnType<typeof patternsOf>

export function patternsOf({ guard }: GuardConfig) {
  return {
    watches: appFilter(guard.watch, guard.ignore),
    ignores: appFilter(guard.ignore, []),
    /** The limits of the probes, in their order. */
    limits: PROBES.map(({ option }) => firstFit(option(guard))),
    /** Bytes. */
    memoryLimit: firstFit(guard.memory_limit),
    webProbe: webProbes(guard.probe),
  }
}

/** A question to an app's own web API. */
export interface WebProbe {
  /** With a slash in front. */
  readonly path: string
  /** Whether an HTTP status is one of an app that is well. */
  readonly expects: (status: number) => boolean
}

function webProbes(values: ReadonlyMap<string, string>) {
  const parse = (value: string): WebProbe => {
    const [path = '/', expected] = value.split(' ')
    const isGood = (status: number) => status >= 200 && status <= 299
    return { path, expects: expected === undefined ? isGood : (status) => status === Number(expected) }
  }
  return firstFit(new Map([...values].map(([pattern, value]) => [pattern, parse(value)])))
}

/** The value of the first pattern that fits an app. */
function firstFit<T>(values: ReadonlyMap<string, T>): (id: string) => T | undefined {
  const rows = [...values].map(([pattern, value]) => [appFilter([pattern], []), value] as const)
  return (id) => rows.find(([fits]) => fits(id))?.[1]
}
