/** A real Node-RED in a separate process, with the flows as a user has imported them. */
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/ports.ts'
import { Process } from '../../support/process.ts'
import type { Installation } from './installation.ts'

const FOLDER = new URL('../../../config/node-red/', import.meta.url)

interface FlowNode {
  readonly id: string
  readonly type: string
  readonly env?: readonly { readonly name: string }[]
  readonly [property: string]: unknown
}

interface NodeRedOptions {
  readonly installation: Installation
  /** The names of files in `config/node-red`. */
  readonly flows: readonly string[]
  readonly brokerPort: number
  /** Values for environment variables of the flows that differ from the defaults. */
  readonly env?: Readonly<Record<string, string>>
}

export class NodeRed implements AsyncDisposable {
  readonly #port: number
  readonly #open: AsyncDisposableStack
  readonly process: Process

  private constructor(process: Process, port: number, open: AsyncDisposableStack) {
    this.process = process
    this.#port = port
    this.#open = open
  }

  /** Resolves when the flows are running and connected to the broker. */
  static async start({ installation, flows, brokerPort, env = {} }: NodeRedOptions): Promise<NodeRed> {
    await using open = new AsyncDisposableStack()
    const { path } = open.use(await mkdtempDisposable(join(tmpdir(), 'node-red-user-')))
    const port = await freePort()
    const nodes = (await Promise.all(flows.map(nodesOf))).flat().map((node) => adapted(node, brokerPort, env))
    // Each file contains the same broker node. Keep one, as users do when the editor prompts them.
    const unique = [...new Map(nodes.map((node) => [node.id, node])).values()]
    await writeFile(join(path, 'flows.json'), JSON.stringify(unique))
    await writeFile(join(path, 'settings.js'), `module.exports = ${JSON.stringify(settings(port))}\n`)
    const program = open.use(
      new Process(process.execPath, [installation.program, '--userDir', path, '--settings', join(path, 'settings.js')]),
    )
    await program.untilLine('Started flows', 30_000)
    await program.untilLine('Connected to broker', 10_000)
    return new NodeRed(program, port, open.move())
  }

  async press(id: string): Promise<void> {
    const { ok, status } = await fetch(`http://127.0.0.1:${this.#port}/inject/${id}`, { method: 'POST' })
    if (!ok) throw new Error(`Node-RED answers ${status}`)
  }

  /** Returns the warnings and errors since the flows were started. Earlier lines are about the settings. */
  complaints(): string[] {
    const { lines, errors } = this.process
    const since = lines.slice(lines.findIndex((line) => line.includes('Started flows')))
    return [...since, ...errors].filter((line) => /\[(warn|error)\]/.test(line))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#open.disposeAsync()
  }
}

async function nodesOf(file: string): Promise<FlowNode[]> {
  return JSON.parse(await readFile(new URL(file, FOLDER), 'utf8'))
}

/** Makes the changes of a user after an import: the broker's address, and the flow's own variables. */
function adapted(node: FlowNode, brokerPort: number, env: Readonly<Record<string, string>>): FlowNode {
  if (node.type === 'mqtt-broker') return { ...node, broker: '127.0.0.1', port: String(brokerPort) }
  if (node.env === undefined) return node
  return { ...node, env: node.env.map((one) => ({ ...one, ...(env[one.name] && { value: env[one.name] }) })) }
}

const settings = (port: number) => ({
  uiHost: '127.0.0.1',
  uiPort: port,
  flowFile: 'flows.json',
  credentialSecret: false,
  disableEditor: true,
  telemetry: { enabled: false, updateNotification: false },
  externalModules: { autoInstall: false, palette: { allowInstall: false }, modules: { allowInstall: false } },
  logging: { console: { level: 'info' } },
})
