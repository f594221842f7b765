/** The measured programs: the baseline, the baseline with the defaults of most bridges, and hub2mqtt. */
import { mkdtempDisposableSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import { BridgeProcess } from '../support/bridge-process.ts'
import { bundled } from '../support/bundled.ts'
import { freePort } from '../support/ports.ts'
import { Process } from '../support/process.ts'
import { temporaryFile } from '../support/temporary-file.ts'
import { cpuMs, peakRss, rss } from './processes.ts'
import { KEY, keyOf } from './protocol.ts'

/** `before` is an earlier version of hub2mqtt. */
export const SUBJECTS = ['bare', 'plain', 'before', 'hub2mqtt'] as const
export type SubjectName = (typeof SUBJECTS)[number]

const bare = stripTypeScriptTypes(readFileSync(new URL('bare.ts', import.meta.url), 'utf8'))
/** The environment variables and Node.js options of `npm start`. */
const { scripts } = v.parse(
  v.object({
    scripts: v.object({ start: v.pipe(v.string(), v.startsWith('exec env '), v.endsWith(' src/bin.js run')) }),
  }),
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')),
)
const words = scripts.start.split(' ').slice(2, -2)
const variables = Object.fromEntries(words.slice(0, words.indexOf('node')).map((word) => word.split('=')))
const startOptions = words.slice(words.indexOf('node') + 1)

let program: Promise<string> | undefined
let earlier: string | undefined

/** @param path the earlier version's `src/bin.js`, next to the bundle in `dist/` */
export function compareWith(path: string): void {
  earlier = path
}

const programOf = (name: SubjectName) => (name === 'before' && earlier !== undefined ? earlier : installed())

/** Builds the bundle of the current sources once. */
function installed(): Promise<string> {
  if (program === undefined) {
    const { path, remove } = mkdtempDisposableSync(join(tmpdir(), 'bench-program-'))
    process.once('exit', remove)
    program = bundled(path)
  }
  return program
}

export interface Place {
  readonly mqtt: string
  readonly hubs: readonly string[]
  /** The number of devices that are published for Home Assistant per second. Default: that of the program. */
  readonly discoveryRate?: number | undefined
}

export class Subject implements AsyncDisposable {
  /** The port of the page; 0 if there is no page. */
  readonly port: number
  readonly #process: Process
  readonly #open: AsyncDisposableStack

  private constructor(process: Process, port: number, open: AsyncDisposableStack) {
    this.port = port
    this.#process = process
    this.#open = open
  }

  /** Builds the program, so that no figure includes the build. */
  static async prepare(name: SubjectName): Promise<void> {
    if (name === 'hub2mqtt') await installed()
  }

  /** Resolves when the process has been started, although the program might not be ready yet. */
  static async start(name: SubjectName, place: Place): Promise<Subject> {
    await using open = new AsyncDisposableStack()
    if (name === 'bare' || name === 'plain') return new Subject(open.use(startBare(name, place)), 0, open.move())
    const port = await freePort()
    const process = open.use(await startOurs(await programOf(name), port, place, open))
    return new Subject(process, port, open.move())
  }

  get cpuMs(): number {
    return cpuMs(this.#process.pid)
  }

  get rss(): number {
    return rss(this.#process.pid)
  }

  get peakRss(): number {
    return peakRss(this.#process.pid)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#open.disposeAsync()
  }
}

async function startOurs(program: string, port: number, place: Place, open: AsyncDisposableStack): Promise<Process> {
  const { mqtt, hubs, discoveryRate } = place
  const [hub = '', ...more] = hubs
  // The first hub has the name that `bare` uses.
  const entries = hubs.map((url, i) => [i === 0 ? 'home' : `hub${i}`, { url, api_key: keyOf(i) }])
  const config = await temporaryFile(open, 'hub2mqtt.json', JSON.stringify({ hubs: Object.fromEntries(entries) }))
  return new BridgeProcess({
    program,
    env: {
      // With one hub, the program needs no configuration file.
      ...(more.length === 0 ? { HUB2MQTT_HUB_URL: hub, HUB2MQTT_HUB_API_KEY: KEY } : { HUB2MQTT_CONFIG: config }),
      HUB2MQTT_MQTT_URL: mqtt,
      HUB2MQTT_HTTP_PORT: String(port),
      ...(discoveryRate !== undefined && { HUB2MQTT_DISCOVERY_RATE: String(discoveryRate) }),
      ...variables,
    },
    nodeOptions: startOptions,
    logs: false,
  })
}

function startBare(name: SubjectName, { mqtt, hubs }: Place): Process {
  const env = {
    PATH: process.env['PATH'],
    BENCH_MQTT: mqtt,
    BENCH_HUB: hubs[0] ?? '',
    BENCH_KEY: KEY,
    ...(name === 'plain' && { NAGLE: 'on' }),
  }
  const root = new URL('../../', import.meta.url).pathname
  return new Process(process.execPath, ['--input-type=module', '--eval', bare], {
    env,
    cwd: root,
    output: 'drop',
  })
}
