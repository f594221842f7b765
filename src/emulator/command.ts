/** `hub2mqtt emulate`: starts a hub from typed options and an optional file. Prints nothing itself. */
import { readPlainText } from '../base/read-plain.ts'
import { EmulatedHub, type EmulatedHubOptions } from './hub.ts'
import { type HubFile, loadHubFile } from './hub-file.ts'
import { population } from './population.ts'
import { emulateProcesses } from './processes/emulate-processes.ts'
import type { Limits } from './processes/watch.ts'
import { GENERATIONS } from './records.ts'
import { EmulatorOptionError } from './scopes.ts'

/** `rateLimit`: default: as on real hubs of the flavour. */
type Passed = Pick<EmulatedHubOptions, 'host' | 'port' | 'flavour' | 'onSpeak' | 'rateLimit' | 'clock' | 'random'>

export interface EmulateOptions extends Passed {
  /** The folder for the hub's state; default: a temporary folder, removed at the end. */
  readonly data?: string | undefined
  /** The folder of the app store; default: the sample apps. */
  readonly store?: string | undefined
  /** Folders of apps that run in place and restart whenever their files change, instead of the sample apps. */
  readonly appFolders?: readonly string[] | undefined
  readonly limits?: Partial<Limits> | undefined
  /** A command that gets the hub's speech as its last argument. */
  readonly speechCommand?: string | undefined
  /** Called with each line that an app of `appFolders` writes, or that the hub writes about it. */
  readonly onLine?: ((id: string, line: string) => void) | undefined
  /** The key to use if the data folder has no key. */
  readonly spareKey?: { readonly key: string; readonly scopes: readonly string[] } | undefined
  /** Called with problems of apps in the store and of the speech command, and with ignored fields of manifests. */
  readonly warn?: ((problem: string) => void) | undefined
  /** The keys as `parseApiKey` returns them. A key that occurs twice gets both sets of scopes. */
  apiKeys?: readonly { readonly key: string; readonly scopes: readonly string[] }[] | undefined
  /** Path of a hub file; the other options override it. */
  file?: string | undefined
  /** Simulates apps instead of running processes. A file and the next two options imply this. */
  simulated?: boolean | undefined
  /** The number of generated apps. */
  apps?: number | undefined
  /** Lets an app crash every now and then. */
  crashes?: boolean | undefined
}

export interface Emulation extends AsyncDisposable {
  readonly hub: EmulatedHub
  /** Whether the data folder has keys, so that `spareKey` is not used. */
  readonly hasOwnKeys: boolean
}

const USAGE_MS = 10_000
const CRASH_MS = 60_000

/** Starts a hub and its apps. Rejects with `EmulatorOptionError` or `HubDataError`, whose messages are for the user. */
export async function emulate(options: EmulateOptions): Promise<Emulation> {
  const file = options.file === undefined ? {} : readHubFile(options.file)
  const { host, port, clock, random } = options
  const flavour = options.flavour ?? file.flavour ?? 'newer'
  const given = {
    ...file,
    ...{ host, port, clock, random, flavour },
    rateLimit: options.rateLimit ?? GENERATIONS[flavour].isNewer,
    keys: { ...file.keys, ...collect(options.apiKeys ?? []) },
  }
  const { simulated, apps, crashes } = options
  const pretends = simulated || crashes || apps !== undefined || file.apps !== undefined || file.store !== undefined
  if (!pretends) return await emulateProcesses(given, options)
  refuseForSimulated(options)
  const hub = await EmulatedHub.start({
    ...given,
    keys: { ...given.keys, ...(options.spareKey && collect([options.spareKey])) },
    apps: apps === undefined ? file.apps : population(apps),
    usageMs: USAGE_MS,
    crashMs: crashes ? CRASH_MS : 0,
    onSpeak: options.onSpeak,
  })
  return { hub, hasOwnKeys: false, [Symbol.asyncDispose]: () => hub.close() }
}

/** Refuses options that have no effect on simulated apps. */
function refuseForSimulated({ data, store, appFolders, speechCommand }: EmulateOptions): void {
  const given = { '--data': data, '--store': store, '--app': appFolders, '--speech-command': speechCommand }
  const flag = Object.entries(given).find(([, value]) => value !== undefined && value.length > 0)?.[0]
  if (flag === undefined) return
  throw new EmulatorOptionError(`${flag}: has no effect on simulated apps`)
}

function readHubFile(path: string): HubFile {
  let text: string
  try {
    text = readPlainText(path)
  } catch (cause) {
    throw new EmulatorOptionError(`cannot read the hub file ${path}: expected a plain file of at most 1 MiB`, { cause })
  }
  return loadHubFile(text, path)
}

function collect(apiKeys: NonNullable<EmulateOptions['apiKeys']>): Record<string, string[]> {
  const keys = new Map<string, string[]>()
  for (const { key, scopes } of apiKeys) keys.set(key, [...(keys.get(key) ?? []), ...scopes])
  return Object.fromEntries(keys)
}
