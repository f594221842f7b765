/** What is measured: the shortest program, the same as most bridges have it, and hub2mqtt as its users start it. */
import { mkdtempDisposableSync, readFileSync } from 'node:fs'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import { BridgeProcess } from '../support/bridge-process.ts'
import { bundled } from '../support/bundled.ts'
import { freePort } from '../support/ports.ts'
import { Process } from '../support/process.ts'
import { cpuMs, peakRss, rss } from './processes.ts'
import { KEY, keyOf } from './protocol.ts'

/** `before` is an earlier version of hub2mqtt. */
export const SUBJECTS = ['bare', 'plain', 'before', 'hub2mqtt'] as const
export type SubjectName = (typeof SUBJECTS)[number]

const bare = stripTypeScriptTypes(readFileSync(new URL('bare.ts', import.meta.url), 'utf8'))
/** As `npm start` does it: the variables that it sets, and what it gives to Node. */
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

/** Names the file that starts the earlier version, `src/bin.js` beside its bundle in `dist/`. */
export function compareWith(path: string): void {
  earlier = path
}

/** The file that starts a version of hub2mqtt. */
const programOf = (name: SubjectName) => (name === 'before' && earlier !== undefined ? earlier : installed())

/** As package and image bring it; made once. */
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
  /** Options for Node, to profile. */
  readonly nodeOptions?: readonly string[]
  /** Devices a second that Home Assistant is told of; default: as users have it. */
  readonly discoveryRate?: number | undefined
}

export class Subject implements AsyncDisposable {
  /** Port of its page; 0: it has none. */
  readonly port: number
  readonly #process: Process
  readonly #open: AsyncDisposableStack

  private constructor(process: Process, port: number, open: AsyncDisposableStack) {
    this.port = port
    this.#process = process
    this.#open = open
  }

  /** Makes what is to be started, so that no figure includes that. */
  static async prepare(name: SubjectName): Promise<void> {
    if (name === 'hub2mqtt') await installed()
  }

  /** Started when it resolves, and nothing more. */
  static async start(name: SubjectName, place: Place): Promise<Subject> {
    await using open = new AsyncDisposableStack()
    const { path } = open.use(await mkdtempDisposable(join(tmpdir(), 'bench-')))
    if (name === 'bare' || name === 'plain') return new Subject(open.use(startBare(name, place)), 0, open.move())
    const port = await freePort()
    const process = open.use(await startOurs(await programOf(name), port, place, path))
    return new Subject(process, port, open.move())
  }

  /** Milliseconds of CPU so far. */
  get cpuMs(): number {
    return cpuMs(this.#process.pid)
  }

  get rss(): number {
    return rss(this.#process.pid)
  }

  /** The most that it ever was, in bytes. */
  get peakRss(): number {
    return peakRss(this.#process.pid)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#open.disposeAsync()
  }
}

async function startOurs(program: string, port: number, place: Place, folder: string): Promise<Process> {
  const { mqtt, hubs, nodeOptions = [], discoveryRate } = place
  const [hub = '', ...more] = hubs
  const config = join(folder, 'hub2mqtt.json')
  // The first hub has the name that bare uses.
  const entries = hubs.map((url, i) => [i === 0 ? 'home' : `hub${i}`, { url, api_key: keyOf(i) }])
  await writeFile(config, JSON.stringify({ hubs: Object.fromEntries(entries) }), { mode: 0o600 })
  return new BridgeProcess({
    program,
    env: {
      // Who has one hub needs no file, and saves reading it.
      ...(more.length === 0 ? { HUB2MQTT_HUB_URL: hub, HUB2MQTT_HUB_API_KEY: KEY } : { HUB2MQTT_CONFIG: config }),
      HUB2MQTT_MQTT_URL: mqtt,
      HUB2MQTT_HTTP_PORT: String(port),
      ...(discoveryRate !== undefined && { HUB2MQTT_DISCOVERY_RATE: String(discoveryRate) }),
      ...variables,
    },
    nodeOptions: [...startOptions, ...nodeOptions],
    logs: false,
  })
}

function startBare(name: SubjectName, { mqtt, hubs, nodeOptions = [] }: Place): Process {
  const env = {
    PATH: process.env['PATH'],
    BENCH_MQTT: mqtt,
    BENCH_HUB: hubs[0] ?? '',
    BENCH_KEY: KEY,
    ...(name === 'plain' && { NAGLE: 'on' }),
  }
  const root = new URL('../../', import.meta.url).pathname
  return new Process(process.execPath, [...nodeOptions, '--input-type=module', '--eval', bare], {
    env,
    cwd: root,
    output: 'drop',
  })
}
