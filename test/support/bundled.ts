import { copyFileSync, cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundle } from '../../src/tooling/build/bundle.ts'

const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url))

/**
 * Builds the bundle in an empty folder, with links to the checkout's packages; returns the path of the file to start.
 */
export async function bundled(folder: string): Promise<string> {
  await bundle(join(folder, 'dist'))
  mkdirSync(join(folder, 'src/emulator'), { recursive: true })
  for (const file of ['package.json', 'src/bin.js']) copyFileSync(join(CHECKOUT, file), join(folder, file))
  // Copy the SDK, because apps have no permission to read it through a link to another folder.
  cpSync(join(CHECKOUT, 'src/emulator/sdk'), join(folder, 'src/emulator/sdk'), { recursive: true })
  symlinkSync(join(CHECKOUT, 'config'), join(folder, 'config'))
  const page = join(CHECKOUT, 'src/web/ui/dist')
  if (existsSync(page)) cpSync(page, join(folder, 'src/web/ui/dist'), { recursive: true })
  symlinkSync(join(CHECKOUT, 'node_modules'), join(folder, 'node_modules'))
  return join(folder, 'src/bin.js')
}
