/** Starts an emulated hub with apps as processes: opens its data and installs the first apps. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { systemClock } from '../../base/clock.ts'
import { ROOT } from '../../base/root.ts'
import type { EmulateOptions, Emulation } from '../command.ts'
import { ManifestError } from '../data/manifest.ts'
import { onceEach, type Packages, type Unpacked } from '../data/packages.ts'
import { addSettings, type HubData, newApp, openHubData } from '../data/state.ts'
import { EmulatedHub, type EmulatedHubOptions } from '../hub.ts'
import { type Flavour, GENERATIONS } from '../records.ts'
import { EmulatorOptionError } from '../scopes.ts'
import { filesIn, MAX_FILES, watchFiles } from './app-files.ts'
import { ProcessApps } from './process-apps.ts'

const execute = promisify(execFile)

const DEMO = fileURLToPath(new URL('config/demo/', ROOT))

/** The sample apps of a new hub. The first one behaves well: use it to try things. */
const FIRST_APPS = [
  'com.athom.hue',
  'net.lindqvist.heatpump',
  'org.tidewater.meter',
  'nl.vandermolen.doorbell',
  'dev.quietbytes.scripts',
]

/** Folders of all sample apps, including those that are not installed at first. */
const SAMPLES = new Map(
  [...FIRST_APPS, 'io.bramblewood.blinds', 'se.norrsken.vacuum'].map((id) => [id, join(DEMO, 'apps', id)]),
)

/** Rejects with `EmulatorOptionError` or `HubDataError`, whose messages are for the user. */
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
      kept: state,
      storedKeys: (key) => keys.scopesOf(key),
      onSpeak: speak,
      backend: (host) => {
        apps = new ProcessApps({ state, packages, limits, clock, onLine }, host)
        return apps
      },
    }),
  )
  for (const { id, folder, files } of own) {
    if (files.size >= MAX_FILES) warn(`${id}: has more than ${MAX_FILES} files; changes of the others are not noticed`)
    const onChange = async (paths: readonly string[]) => await apps?.reload(id, folder, paths)
    opened.defer(watchFiles(folder, files, clock ?? systemClock, onChange))
  }
  const resources = opened.move()
  return { hub: running, hasOwnKeys, [Symbol.asyncDispose]: () => resources.disposeAsync() }
}

/** Installs the sample apps at the first start, and the apps that run in place at every start; returns the latter. */
async function install(data: HubData, appFolders: readonly string[], flavour: Flavour) {
  const { state, packages } = data
  // Take the fingerprints before reading the apps, so that no later change is missed.
  const files = await Promise.all(appFolders.map((folder) => filesIn(folder)))
  const own = appFolders.map((folder) => adopted(packages, folder))
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
  // This hub does not update apps automatically.
  return newApp({ id, folder, version, channel, origin, autoupdate: false })
}

function adopted(packages: Packages, folder: string): Unpacked {
  try {
    return packages.adopt(folder)
  } catch (error) {
    if (error instanceof ManifestError) throw new EmulatorOptionError(error.message, { cause: error })
    throw error
  }
}

const MAX_SPEECH_MS = 60_000
/** Maximum number of waiting texts; more are dropped. */
const MAX_WAITING = 10

/**
 * Speaks texts with a command of the machine.
 * @param command - Program and arguments, separated by spaces; the text is the last argument. No shell is involved.
 * @param warn - Called with the error if the command fails.
 */
function speaker(command: string, shown: (text: string) => void, warn: (problem: string) => void) {
  const [program = '', ...args] = command.split(' ').filter(Boolean)
  const waiting: string[] = []
  let speaks = false

  const next = () => {
    const text = waiting.shift()
    speaks = text !== undefined
    if (text === undefined) return
    // A text that is too long for an argument throws synchronously.
    void Promise.try(() => execute(program, [...args, text], { timeout: MAX_SPEECH_MS }))
      .catch((error: unknown) => warn(`${program} does not speak: ${String(error).split('\n')[0]}`))
      .finally(next)
  }
  return (text: string) => {
    shown(text)
    if (waiting.length >= MAX_WAITING) return
    // Prevent the text from ending the argument or being read as an option.
    const safe = text.replaceAll('\0', ' ')
    waiting.push(safe.startsWith('-') ? ` ${safe}` : safe)
    if (!speaks) next()
  }
}
