/**
 * The program that tests start as a separate process, usually the bundle, which starts in half the time of the sources.
 * The bundle is built before the first test, unless it is newer than all sources.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url))
const FOLDER = join(CHECKOUT, 'node_modules/.cache/hub2mqtt-program')

export const SOURCES = join(CHECKOUT, 'src/bin.js')
/** The program to test: the sources if coverage is measured or `npm test` is not used, otherwise the bundle. */
export const PROGRAM = process.env['TESTED_PROGRAM'] ?? SOURCES

function changedAt(path: string): number {
  const files = readdirSync(join(CHECKOUT, path), { recursive: true, encoding: 'utf8' })
  return Math.max(...files.map((file) => statSync(join(CHECKOUT, path, file)).mtimeMs))
}

export default async function setup(): Promise<void> {
  const program = join(FOLDER, 'src/bin.js')
  if (!existsSync(program) || statSync(program).mtimeMs < changedAt('src')) {
    // Import the module only here, because each worker loads this file.
    const { bundled } = await import('./bundled.ts')
    rmSync(FOLDER, { recursive: true, force: true })
    mkdirSync(FOLDER, { recursive: true })
    await bundled(FOLDER)
  }
  process.env['TESTED_PROGRAM'] = program
}
