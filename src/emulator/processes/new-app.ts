/** `hub2mqtt emulate new-app`: creates a folder with a working app and its test. */
import { readdirSync } from 'node:fs'
import { cp, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import * as v from 'valibot'
import { systemCode } from '../../base/failures.ts'
import { VERSION } from '../../base/version.ts'
import { makeFolders } from '../data/data-folder.ts'
import { AppId } from '../data/manifest.ts'
import { EmulatorOptionError } from '../scopes.ts'
import { SDK } from './app-process.ts'

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
    'app.js': APP,
    'app.test.js': TEST,
  }
}

const APP = `/** @type {import('hub2mqtt/sdk').Start} */
export default async ({ app, hub, log }) => {
  const settings = hub.manager('settings')
  let greeting = await settings.get('greeting')
  settings.on('change', (name, value) => {
    if (name === 'greeting') greeting = value
  })

  app.api.get('/greeting/:name', ({ params }) => {
    const text = \`\${greeting}, \${params.name}!\`
    app.emit('greeting', { text })
    return { text }
  })
  app.on('stop', () => log('goodbye'))
  log(\`\${app.id} \${app.version} greets\`)
}
`

const TEST = `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApp } from 'hub2mqtt/sdk/testing'
import start from './app.js'

test('greets with the setting and emits an event', async () => {
  const app = await startApp(start, { settings: { greeting: 'Good morning' } })
  assert.deepEqual(await app.get('/greeting/Ada'), { text: 'Good morning, Ada!' })
  assert.deepEqual(app.emitted, [['greeting', { text: 'Good morning, Ada!' }]])
})

test('applies a new greeting while it runs', async () => {
  const app = await startApp(start, { settings: { greeting: 'Hello' } })
  app.setSetting('greeting', 'Goodbye')
  assert.deepEqual(await app.get('/greeting/Ada'), { text: 'Goodbye, Ada!' })
})
`
