/** An emulated hub whose apps are processes: its memory opened, its first apps installed, everything started. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../base/clock.ts'
import { ROOT } from '../../base/root.ts'
import type { EmulateOptions } from '../command.ts'
import { type HubData, openHubData } from '../data/hub-data.ts'
import { ManifestError } from '../data/manifest.ts'
import type { Packages, Unpacked } from '../data/packages.ts'
import { EmulatedHub, type EmulatedHubOptions } from '../hub.ts'
import { type Flavour, GENERATIONS } from '../records.ts'
import { EmulatorOptionError } from '../scopes.ts'
import { filesIn, MOST_FILES, watchFiles } from './app-files.ts'
import { addSettings, newApp } from './first-state.ts'
import { ProcessApps } from './process-apps.ts'
import { speaker } from './speech.ts'

const SAMPLES = fileURLToPath(new URL('config/demo/', ROOT))

/** The sample apps that a new hub has. The first one is well-behaved: that is the one to try things on. */
const FIRST_APPS = [
  'com.athom.hue',
  'net.lindqvist.heatpump',
  'org.tidewater.meter',
  'nl.vandermolen.doorbell',
  'dev.quietbytes.scripts',
]

export interface RunningHub extends AsyncDisposable {
  readonly hub: EmulatedHub
  /** Where its state is. */
  readonly folder: string
  /** Whether there are keys in its data folder. */
  readonly hasOwnKeys: boolean
}

/** Rejects with `EmulatorOptionError` or `HubDataError` for the user. */
export async function emulateProcesses(hub: EmulatedHubOptions, options: EmulateOptions): Promise<RunningHub> {
  const { clock, limits, onSpeak = () => {} } = options
  const tell = onceEach(options.tell ?? (() => {}))
  await using opened = new AsyncDisposableStack()
  const store = options.store ?? join(SAMPLES, 'store')
  const data = opened.use(await openHubData({ folder: options.data, store, hubId: hub.id, tell }))
  const own = await install(data, options.appFolders ?? [], hub.flavour ?? 'newer')
  const { state, packages, keys } = data
  const hasOwnKeys = keys.list().length > 0
  const { spareKey } = options
  const spare = spareKey === undefined || hasOwnKeys ? {} : { [spareKey.key]: spareKey.scopes }
  const speak = options.speechCommand === undefined ? onSpeak : speaker(options.speechCommand, onSpeak, tell)
  const { onLine = () => {} } = options
  const world = {
    state,
    packages: withSamples(packages),
    limits,
    clock,
    onLine: (id: string, line: string) => {
      if (own.some((app) => app.id === id)) onLine(id, line)
    },
  }
  let apps: ProcessApps | undefined
  const running = opened.use(
    await EmulatedHub.start({
      ...hub,
      keys: { ...hub.keys, ...spare },
      id: state.hubId,
      kept: state,
      storedKeys: keys,
      onSpeak: speak,
      backend: (host) => {
        apps = new ProcessApps(world, host)
        return apps
      },
    }),
  )
  for (const { id, folder, files } of own) {
    if (files.size >= MOST_FILES)
      tell(`${id}: has more than ${MOST_FILES} files; changes of the others are not noticed`)
    const onChange = async (paths: readonly string[]) => await apps?.reload(id, folder, paths)
    opened.defer(watchFiles(folder, files, clock ?? systemClock, onChange))
  }
  const resources = opened.move()
  return { hub: running, folder: data.folder, hasOwnKeys, [Symbol.asyncDispose]: () => resources.disposeAsync() }
}

/** The store is read often: what is wrong in it is told once. */
function onceEach(tell: (problem: string) => void) {
  const told = new Set<string>()
  return (problem: string) => {
    if (!told.has(problem)) tell(problem)
    told.add(problem)
  }
}

/** The first start brings the sample apps; each one the apps that run where they are, which are returned. */
async function install(data: HubData, appFolders: readonly string[], flavour: Flavour) {
  const { state, packages } = data
  // Before anything of them is read: what changes later is noticed.
  const files = await Promise.all(appFolders.map(filesIn))
  const own = appFolders.map((folder) => adopted(packages, folder))
  if (state.isNew) {
    const samples = own.length > 0 ? [] : await Promise.all(FIRST_APPS.map((id) => sample(packages, id)))
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
  // This hub updates nothing by itself.
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

function offerOf(packages: Packages, id: string) {
  const folder = join(SAMPLES, 'apps', id)
  const { manifest } = packages.adopt(folder)
  const { version, channel } = manifest
  return { id, version, channel, manifest, folder }
}

const sample = (packages: Packages, id: string) => packages.unpack(offerOf(packages, id))

/** What the store does not have and is among the sample apps can be installed as well. */
function withSamples(packages: Packages): Packages {
  return {
    find: (wanted) => packages.find(wanted) ?? sampleFor(packages, wanted),
    latest: (id, channel) => packages.latest(id, channel),
    unpack: (offer) => packages.unpack(offer),
    adopt: (folder) => packages.adopt(folder),
    discard: (folder) => packages.discard(folder),
  }
}

function sampleFor(packages: Packages, { id, version, present }: Parameters<Packages['find']>[0]) {
  if (!SAMPLE_IDS.has(id)) return undefined
  const offer = offerOf(packages, id)
  const isWanted = offer.version === (version ?? offer.version) && offer.version === (present ?? offer.version)
  return isWanted ? offer : undefined
}

const SAMPLE_IDS = new Set([...FIRST_APPS, 'io.bramblewood.blinds', 'se.norrsken.vacuum'])
