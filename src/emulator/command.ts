/** `hub2mqtt emulate`: a hub from typed options and perhaps a file. Says nothing itself. */
import { readFile } from 'node:fs/promises'
import type { Clock } from '../base/clock.ts'
import { EmulatedHub } from './hub.ts'
import { type HubFile, loadHubFile } from './hub-file.ts'
import { population } from './population.ts'
import type { Flavour } from './records.ts'
import { EmulatorOptionError } from './scopes.ts'

export { EmulatorOptionError, parseApiKey, scopeNames } from './scopes.ts'

export interface EmulateOptions {
  host?: string | undefined
  port?: number | undefined
  flavour?: Flavour | undefined
  /** As `parseApiKey` reads them; a key given twice has the scopes of both. */
  apiKeys?: readonly { readonly key: string; readonly scopes: readonly string[] }[] | undefined
  /** Path of a hub file; what is given here beside it wins over it. */
  file?: string | undefined
  /** This many generated apps in place of the default ones. */
  apps?: number | undefined
  /** Lets an app crash every now and then. */
  crashes?: boolean | undefined
  /** Whether to refuse what comes too fast. Default: as hubs of the flavour do. */
  rateLimit?: boolean | undefined
  clock?: Clock | undefined
  random?: (() => number) | undefined
}

const USAGE_MS = 10_000
const CRASH_MS = 60_000

/** Starts a hub that lives: usage moves, apps take their time to start. Rejects with `EmulatorOptionError` for the user. */
export async function emulate(options: EmulateOptions): Promise<EmulatedHub> {
  const file = options.file === undefined ? {} : await readHubFile(options.file)
  const { host, port, clock, random } = options
  const flavour = options.flavour ?? file.flavour ?? 'newer'
  return EmulatedHub.start({
    ...file,
    host,
    port,
    clock,
    random,
    flavour,
    rateLimit: options.rateLimit ?? (flavour === 'newer' || flavour === 'self-hosted'),
    keys: { ...file.keys, ...collect(options.apiKeys ?? []) },
    apps: options.apps === undefined ? file.apps : population(options.apps),
    usageMs: USAGE_MS,
    crashMs: options.crashes ? CRASH_MS : 0,
  })
}

async function readHubFile(path: string): Promise<HubFile> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new EmulatorOptionError(`cannot read the hub file ${path}`, { cause })
  })
  return loadHubFile(text, path)
}

function collect(apiKeys: NonNullable<EmulateOptions['apiKeys']>): Record<string, string[]> {
  const keys = new Map<string, string[]>()
  for (const { key, scopes } of apiKeys) keys.set(key, [...(keys.get(key) ?? []), ...scopes])
  return Object.fromEntries(keys)
}
