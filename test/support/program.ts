/**
 * The program that tests start as a process of its own: the bundle that package and image bring, which starts in half of
 * the time that the sources take. It is made before the first test, unless it is newer than all sources.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url))
const FOLDER = join(CHECKOUT, 'node_modules/.cache/hub2mqtt-program')

/** What runs the sources. */
export const SOURCES = join(CHECKOUT, 'src/bin.js')
/** Path of the file that starts it; with coverage, and without `npm test`, that of the sources. */
export const PROGRAM = process.env['TESTED_PROGRAM'] ?? SOURCES

function changedAt(path: string): number {
  const files = readdirSync(join(CHECKOUT, path), { recursive: true, encoding: 'utf8' })
  return Math.max(...files.map((file) => statSync(join(CHECKOUT, path, file)).mtimeMs))
}

export default async function setup(): Promise<void> {
  const program = join(FOLDER, 'src/bin.js')
  if (!existsSync(program) || statSync(program).mtimeMs < changedAt('src')) {
    // Loaded where it is needed: each worker reads this file.
    const { bundled } = await import('./bundled.ts')
    rmSync(FOLDER, { recursive: true, force: true })
    mkdirSync(FOLDER, { recursive: true })
    await bundled(FOLDER)
  }
  process.env['TESTED_PROGRAM'] = program
}
