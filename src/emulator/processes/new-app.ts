/** `hub2mqtt emulate new-app`: creates a folder with a working app and its test. */
import { readdirSync } from 'node:fs'
import { cp, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as v from 'valibot'
import { systemCode } from '../../base/failures.ts'
import { ROOT } from '../../base/root.ts'
import { VERSION } from '../../base/version.ts'
import { makeFolders } from '../data/data-folder.ts'
import { AppId } from '../data/manifest.ts'
import { EmulatorOptionError } from '../scopes.ts'
import { SDK } from './app-process.ts'

/** The folder with the files that are the same in every new app. */
const TEMPLATE = fileURLToPath(new URL('config/new-app/', ROOT))

/** Creates an app. Resolves to its folder. @throws EmulatorOptionError if the id or the folder cannot be used */
export async function newAppFolder(id: string, given: string | undefined): Promise<string> {
  const parsed = v.safeParse(AppId, id)
  if (!parsed.success) throw new EmulatorOptionError(`the id ${parsed.issues[0].message}`)
  const folder = resolve(given ?? id)
  try {
    await fill(folder, filesOf(id))
  } catch (cause) {
    const code = systemCode(cause)
    if (code === '') throw cause
    throw new EmulatorOptionError(`${folder}: cannot be used as the folder of an app (${code})`, { cause })
  }
  return folder
}

async function fill(folder: string, files: ReturnType<typeof filesOf>): Promise<void> {
  makeFolders(folder)
  if (readdirSync(folder).length > 0) throw new EmulatorOptionError(`${folder} is not empty`)
  for (const [name, text] of Object.entries(files)) {
    makeFolders(dirname(join(folder, name)))
    await writeFile(join(folder, name), text)
  }
  await cp(TEMPLATE, folder, { recursive: true })
  // Copy the SDK as `npm install` would, so that the app can be tested immediately.
  await cp(SDK, join(folder, 'node_modules/hub2mqtt'), { recursive: true })
}

const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`

function filesOf(id: string): Readonly<Record<string, string>> {
  const name = id.split('.').at(-1) ?? id
  const resolved = `file:${SDK.replaceAll('\\', '/')}`
  // Refer to the package by its path, because the registry may have another package with this name.
  const devDependencies = { hub2mqtt: resolved }
  const copied = { 'node_modules/hub2mqtt': { version: VERSION, resolved, dev: true } }
  return {
    'app.json': json({ id, name, version: '1.0.0', permissions: [], settings: { greeting: 'Hello' } }),
    'package.json': json({ private: true, type: 'module', scripts: { test: 'node --test' }, devDependencies }),
    'package-lock.json': json({ lockfileVersion: 3, requires: true, packages: { '': { devDependencies }, ...copied } }),
    // Make npm copy packages, because the hub refuses links out of the folder.
    '.npmrc': 'install-links=true\n',
    'jsconfig.json': json({ compilerOptions: { module: 'nodenext', strict: true, checkJs: true } }),
    'locales/en.json': json({ title: name }),
  }
}
