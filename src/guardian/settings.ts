import type { Config } from '../config/options.ts'
import { appFilter } from '../contract/permissions.ts'
import { PROBES } from './probes.ts'

export type GuardConfig = Pick<Config, 'guard' | 'updates'>

/** Functions that look up an app's values in the configuration, whose keys are patterns of app ids. */
export type Patterns = ReturnType<typeof patternsOf>

export function patternsOf({ guard, updates }: GuardConfig) {
  return {
    watches: appFilter(guard.watch, guard.ignore),
    ignores: appFilter(guard.ignore, []),
    /** The limits of the probes, in the order of `PROBES`. */
    limits: PROBES.map(({ option }) => firstFit(option(guard))),
    /** Returns the memory limit of an app, in bytes. */
    memoryLimit: firstFit(guard.memory_limit),
    webProbe: webProbes(guard.probe),
    unavailable: firstFit(guard.unavailable),
    afterBoot: firstFit(guard.after_boot),
    severity: firstFit(updates.severity),
  }
}

export interface WebProbe {
  /** The path of the request, with a leading slash. */
  readonly path: string
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

function firstFit<T>(values: ReadonlyMap<string, T>): (id: string) => T | undefined {
  const rows = [...values].map(([pattern, value]) => [appFilter([pattern], []), value] as const)
  return (id) => rows.find(([fits]) => fits(id))?.[1]
}
