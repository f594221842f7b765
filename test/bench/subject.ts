/** What is measured: the shortest program, the same as most bridges have it, and hub2mqtt as its users start it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as v from 'valibot'
import { cpuMs, end, onExit, rss } from './processes.ts'
import { KEY } from './protocol.ts'

export const SUBJECTS = ['bare', 'plain', 'hub2mqtt'] as const
export type SubjectName = (typeof SUBJECTS)[number]

const root = fileURLToPath(new URL('../../', import.meta.url))
const bare = stripTypeScriptTypes(readFileSync(new URL('bare.ts', import.meta.url), 'utf8'))
/** As `npm start` does it: the variables that it sets, and what it gives to Node. */
const { scripts } = v.parse(
  v.object({ scripts: v.object({ start: v.pipe(v.string(), v.startsWith('exec env ')) }) }),
  JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')),
)
const words = scripts.start.split(' ').slice(2)
const variables = Object.fromEntries(words.slice(0, words.indexOf('node')).map((word) => word.split('=')))
const start = words.slice(words.indexOf('node') + 1)
const script = start.indexOf('src/bin.js')

export interface Place {
  readonly mqtt: string
  readonly hubs: readonly string[]
  /** Options for Node, to profile. */
  readonly nodeOptions?: readonly string[]
}

export class Subject implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #folder: string

  private constructor(child: ChildProcess, folder: string) {
    this.#child = child
    this.#folder = folder
  }

  /** Started when it resolves, and nothing more. */
  static async start(name: SubjectName, place: Place): Promise<Subject> {
    const { mqtt, hubs, nodeOptions = [] } = place
    const folder = await mkdtemp(join(tmpdir(), 'bench-'))
    const file = join(folder, 'hub2mqtt.json')
    await writeFile(file, JSON.stringify(configuration(hubs)), { mode: 0o600 })
    const [hub = '', ...more] = hubs
    const hubsOurs =
      more.length === 0 ? { HUB2MQTT_HUB_URL: hub, HUB2MQTT_HUB_API_KEY: KEY } : { HUB2MQTT_CONFIG: file }
    const ours = { ...hubsOurs, HUB2MQTT_MQTT_URL: mqtt, HUB2MQTT_HTTP_PORT: '0', ...variables }
    const theirs = {
      BENCH_MQTT: mqtt,
      BENCH_HUB: hubs[0] ?? '',
      BENCH_KEY: KEY,
      ...(name === 'plain' && { NAGLE: 'on' }),
    }
    const isOurs = name === 'hub2mqtt'
    const program = isOurs
      ? start.toSpliced(script, 0, ...nodeOptions)
      : [...nodeOptions, '--input-type=module', '--eval', bare]
    const child = spawn(process.execPath, program, {
      cwd: root,
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...(isOurs ? ours : theirs) },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    onExit(child)
    return new Subject(child, folder)
  }

  get #pid(): number {
    const { pid, exitCode } = this.#child
    if (pid === undefined || exitCode !== null) throw new Error('what is measured has ended')
    return pid
  }

  /** Milliseconds of CPU so far. */
  get cpuMs(): number {
    return cpuMs(this.#pid)
  }

  get rss(): number {
    return rss(this.#pid)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await end(this.#child, 'SIGTERM')
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** The first hub has the name that bare uses. */
function configuration(hubs: readonly string[]) {
  const entries = hubs.map((url, i) => [i === 0 ? 'home' : `hub${i}`, { url, api_key: KEY }])
  return { hubs: Object.fromEntries(entries) }
}
