/** `hub2mqtt emulate`: starts an emulated hub from typed options and an optional file. Prints nothing itself. */

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { systemClock } from '../base/clock.ts'
import { readPlainText } from '../base/read-plain.ts'
import { ROOT } from '../base/root.ts'
import { onceEach } from '../base/text.ts'
import type { Unpacked } from './data/packages.ts'
import { addSettings, type HubData, newApp, openHubData } from './data/state.ts'
import { EmulatedHub, type EmulatedHubOptions } from './hub.ts'
import { type HubFile, loadHubFile } from './hub-file.ts'
import { population } from './population.ts'
import { filesIn, MAX_FILES, watchFiles } from './processes/app-files.ts'
import { ProcessApps } from './processes/process-apps.ts'
import type { Limits } from './processes/watch.ts'
import { type Flavour, GENERATIONS } from './records.ts'
import { EmulatorOptionError } from './scopes.ts'

/** Options that are passed to the hub. By default, `rateLimit` is as on real hubs of the flavour. */
type Passed = Pick<EmulatedHubOptions, 'host' | 'port' | 'flavour' | 'onSpeak' | 'rateLimit' | 'clock' | 'random'>

export interface EmulateOptions extends Passed {
  /** The folder for the hub's state; default: a temporary folder, removed at the end. */
  readonly data?: string | undefined
  /** The folder of the app store; default: the sample apps. */
  readonly store?: string | undefined
  /** Folders of apps that run in place and restart whenever their files change, instead of the sample apps. */
  readonly appFolders?: readonly string[] | undefined
  readonly limits?: Partial<Limits> | undefined
  /** A command that is run for each spoken text, with the text as its last argument. */
  readonly speechCommand?: string | undefined
  /** Called with each line that an app of `appFolders` writes, or that the hub writes about that app. */
  readonly onLine?: ((id: string, line: string) => void) | undefined
  /** The key to use if the data folder has no key. */
  readonly spareKey?: { readonly key: string; readonly scopes: readonly string[] } | undefined
  /** Called with problems of apps in the store and of the speech command, and with ignored fields of manifests. */
  readonly warn?: ((problem: string) => void) | undefined
  /** The keys as `parseApiKey` returns them. A key that occurs twice gets both sets of scopes. */
  apiKeys?: readonly { readonly key: string; readonly scopes: readonly string[] }[] | undefined
  /** Path of a hub file; the other options override it. */
  file?: string | undefined
  /** Whether to simulate apps instead of running them. `apps`, `crashes`, and apps or a store in `file` imply it. */
  simulated?: boolean | undefined
  /** Number of simulated apps to generate. */
  apps?: number | undefined
  crashes?: boolean | undefined
}

interface Emulation extends AsyncDisposable {
  readonly hub: EmulatedHub
  /** Whether the data folder has keys, so that `spareKey` is not used. */
  readonly hasOwnKeys: boolean
}

const USAGE_MS = 10_000
const CRASH_MS = 60_000

/** Starts a hub and its apps. @throws EmulatorOptionError, HubDataError or ManifestError, with messages for users */
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

function refuseForSimulated({ data, store, appFolders, speechCommand }: EmulateOptions): void {
  const given = { '--data': data, '--store': store, '--app': appFolders, '--speech-command': speechCommand }
  const flag = Object.entries(given).find(([, value]) => value !== undefined && value.length > 0)?.[0]
  if (flag !== undefined) throw new EmulatorOptionError(`${flag}: has no effect on simulated apps`)
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

const execute = promisify(execFile)

const DEMO = fileURLToPath(new URL('config/demo/', ROOT))

/** The sample apps of a new hub. The first app has no faults, so that users can experiment with it. */
const FIRST_APPS = [
  'com.athom.hue',
  'net.lindqvist.heatpump',
  'org.tidewater.meter',
  'nl.vandermolen.doorbell',
  'dev.quietbytes.scripts',
]

/** Id of a sample app → folder. Some of the sample apps can be installed, but are not part of a new hub. */
const SAMPLES = new Map(
  [...FIRST_APPS, 'io.bramblewood.blinds', 'se.norrsken.vacuum'].map((id) => [id, join(DEMO, 'apps', id)]),
)

export async function emulateProcesses(hub: EmulatedHubOptions, options: EmulateOptions): Promise<Emulation> {
  const { clock, limits, onSpeak = () => {}, warn = () => {} } = options
  await using opened = new AsyncDisposableStack()
  const store = options.store ?? join(DEMO, 'store')
  const data = opened.use(await openHubData({ folder: options.data, store, samples: SAMPLES, hubId: hub.id, warn }))
  const own = await install(data, options.appFolders ?? [], hub.flavour ?? 'newer')
  const { state, packages, keys } = data
  const hasOwnKeys = keys.list().length > 0
  const { spareKey } = options
  const spare = spareKey === undefined || hasOwnKeys ? {} : { [spareKey.key]: spareKey.scopes }
  const speak = options.speechCommand === undefined ? onSpeak : speaker(options.speechCommand, onSpeak, onceEach(warn))
  const onLine = (id: string, line: string) => {
    if (own.some((app) => app.id === id)) options.onLine?.(id, line)
  }
  let apps: ProcessApps | undefined
  const running = opened.use(
    await EmulatedHub.start({
      ...hub,
      keys: { ...hub.keys, ...spare },
      id: state.hubId,
      hubStore: state,
      storedKeys: (key) => keys.scopesOf(key),
      onSpeak: speak,
      backend: (host) => {
        apps = new ProcessApps({ state, packages, limits, clock, onLine }, host)
        return apps
      },
    }),
  )
  for (const { id, folder, files } of own) {
    if (files.size >= MAX_FILES) warn(`${id}: has more than ${MAX_FILES} files; changes to the others are not detected`)
    const onChange = async (paths: readonly string[]) => await apps?.reload(id, folder, paths)
    opened.defer(watchFiles(folder, files, clock ?? systemClock, onChange))
  }
  const resources = opened.move()
  return { hub: running, hasOwnKeys, [Symbol.asyncDispose]: () => resources.disposeAsync() }
}

/** Installs the sample apps on the first start. Installs the apps that run in place on every start and returns them. */
async function install(data: HubData, appFolders: readonly string[], flavour: Flavour) {
  const { state, packages } = data
  // Record the state of the files before reading the apps, so that no later change is missed.
  const files = await Promise.all(appFolders.map((folder) => filesIn(folder)))
  const own = appFolders.map((folder) => packages.adopt(folder))
  if (state.isNew) {
    const samples =
      own.length > 0 ? [] : await Promise.all(FIRST_APPS.map((id) => packages.unpack(packages.sample(id))))
    for (const { manifest } of samples) addSettings(state, manifest.id, manifest.settings)
    state.populate(samples.map((code) => appOf(code, flavour, 'appstore')))
  }
  for (const code of own) {
    const { id, settings, version } = code.manifest
    const present = state.app(id)
    state.put(present ? { ...present, folder: code.folder, version } : appOf(code, flavour, 'devkit_run'))
    addSettings(state, id, settings)
  }
  return own.map(({ manifest: { id }, folder }, at) => ({ id, folder, files: files[at] ?? new Map() }))
}

function appOf({ folder, manifest: { id, version } }: Unpacked, flavour: Flavour, origin: string) {
  const [channel = ''] = GENERATIONS[flavour].channels
  // Disable automatic updates, which this hub does not support.
  return newApp({ id, folder, version, channel, origin, autoupdate: false })
}

const MAX_SPEECH_MS = 60_000

/**
 * Speaks texts one after another with `command`, a program and arguments separated by spaces. Adds the text as the last
 * argument.
 */
function speaker(command: string, shown: (text: string) => void, warn: (problem: string) => void) {
  const [program = '', ...args] = command.split(' ').filter(Boolean)
  let spoken: Promise<unknown> = Promise.resolve()
  return (text: string) => {
    shown(text)
    // Prevent a NUL character from ending the argument, and a leading dash from making it an option.
    const safe = text.replaceAll('\0', ' ')
    spoken = spoken
      .then(() => execute(program, [...args, safe.startsWith('-') ? ` ${safe}` : safe], { timeout: MAX_SPEECH_MS }))
      .catch((error: unknown) => warn(`${program} failed to speak a text: ${String(error).split('\n')[0]}`))
  }
}
