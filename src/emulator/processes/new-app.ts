/** `hub2mqtt emulate new-app`: a folder with an app that works, and its test. */
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import * as v from 'valibot'
import { AppId } from '../data/manifest.ts'
import { EmulatorOptionError } from '../scopes.ts'

/** Resolves with the path of the new folder. @throws EmulatorOptionError for an id or a folder that cannot be used */
export async function newAppFolder(id: string, given: string | undefined): Promise<string> {
  const parsed = v.safeParse(AppId, id)
  if (!parsed.success) throw new EmulatorOptionError(`the id ${parsed.issues[0].message}`)
  const folder = resolve(given ?? id)
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    throw new EmulatorOptionError(`${folder} is not empty`)
  }
  for (const [name, text] of Object.entries(filesOf(id))) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text)
  }
  return folder
}

const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`

function filesOf(id: string): Readonly<Record<string, string>> {
  const name = id.split('.').at(-1) ?? id
  return {
    'app.json': json({ id, name, version: '1.0.0', permissions: [], settings: { greeting: 'Hello' } }),
    'package.json': json({ private: true, type: 'module', scripts: { test: 'node --test' } }),
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
import start from './app.js'

/** What the app has of its hub, as far as it uses it. */
async function started(settings) {
  const routes = new Map()
  const emitted = []
  let change
  await start({
    app: {
      id: 'test',
      version: '1.0.0',
      api: { get: (path, handler) => routes.set(path, handler) },
      emit: (...event) => emitted.push(event),
      on: () => {},
    },
    hub: {
      manager: () => ({
        get: async (name) => settings[name],
        on: (_event, listener) => {
          change = listener
        },
      }),
    },
    log: () => {},
  })
  return { ask: (path, params) => routes.get(path)({ params }), emitted, change }
}

test('greets by the setting, and tells everybody', async () => {
  const { ask, emitted } = await started({ greeting: 'Good morning' })
  assert.deepEqual(ask('/greeting/:name', { name: 'Ada' }), { text: 'Good morning, Ada!' })
  assert.deepEqual(emitted, [['greeting', { text: 'Good morning, Ada!' }]])
})

test('takes a new greeting while it runs', async () => {
  const { ask, change } = await started({ greeting: 'Hello' })
  change('greeting', 'Goodbye')
  assert.deepEqual(ask('/greeting/:name', { name: 'Ada' }), { text: 'Goodbye, Ada!' })
})
`
