/** A Node-RED from the registry, installed into a temporary folder for one run. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execute } from '../../support/process.ts'

const VERSION = '5.0.7'

export interface Installation extends AsyncDisposable {
  /** The path of the script that Node.js runs. */
  readonly program: string
}

/** Installs Node-RED. If that fails, returns `undefined` and prints why, or throws with `REQUIRE_NODE_RED=1`. */
export async function installNodeRed(): Promise<Installation | undefined> {
  const { path, remove } = await mkdtempDisposable(join(tmpdir(), 'node-red-'))
  try {
    await writeFile(join(path, 'package.json'), '{ "private": true }\n')
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--fetch-retries=1']
    await execute('npm', ['install', ...options, `node-red@${VERSION}`], { cwd: path })
    return { program: join(path, 'node_modules/node-red/red.js'), [Symbol.asyncDispose]: remove }
  } catch (error) {
    await remove()
    if (process.env['REQUIRE_NODE_RED'] === '1') throw error
    const [why] = /request to .*|npm error (?!code).*/.exec(String(error)) ?? [String(error).split('\n')[0]]
    process.stderr.write(`skipped: the flows, because Node-RED ${VERSION} cannot be installed: ${why}\n`)
    return undefined
  }
}
