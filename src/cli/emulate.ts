import { randomBytes } from 'node:crypto'
import { emulate } from '../emulator/command.ts'
import { parseApiKey } from '../emulator/scopes.ts'
import { shownText } from '../observability/controls.ts'
import { type Body, exitCodes, type Values } from './command.ts'
import type { emulateFlags } from './commands.ts'
import { stopSignal } from './signals.ts'

type Flags = Values<typeof emulateFlags>

/** Converts flags to options. Omits flags that were not given, because a file may set the same options. */
export function hubOptions({
  'memory-limit': memory,
  'cpu-limit': percent,
  'no-rate-limit': anyRate,
  ...flags
}: Flags) {
  return {
    ...flags,
    port: flags.port ?? (flags.flavour === 'self-hosted' ? 4859 : 8080),
    limits: { ...(memory !== undefined && { memory }), ...(percent !== undefined && { cpu: percent / 100 }) },
    ...(anyRate && { rateLimit: false }),
    apiKeys: flags['api-key'].map(parseApiKey),
    appFolders: flags.app,
    speechCommand: flags['speech-command'],
  }
}

export const emulateHub: Body<Flags> = async ({ print, warn }, flags) => {
  const { file, 'api-key': given, 'control-port': controlPort } = flags
  // Without a key, no client could use the hub. This key is not used if the data folder already contains keys.
  const spare = given.length === 0 && file === undefined ? newKey() : undefined
  await using emulation = await emulate({
    ...hubOptions(flags),
    spareKey: spare,
    onSpeak: (text) => print(`says: ${shownText(text)}`),
    onLine: (id, line) => print(`${id}: ${shownText(line)}`),
    warn: (problem) => warn(`hub2mqtt: ${shownText(problem)}`),
  })
  const { hub } = emulation
  print(`emulated hub listening on ${hub.url}`)
  await using control =
    controlPort === undefined ? undefined : await (await import('../emulator/control.ts')).openControl(hub, controlPort)
  if (control !== undefined) print(`its control port: ${control.url}`)
  if (spare !== undefined && !emulation.hasOwnKeys) {
    print(`its API key, created for this run: ${spare.key} (${spare.scopes.join(', ')})`)
  }
  await new Promise((resolve) => stopSignal().addEventListener('abort', resolve))
  return exitCodes.ok.code
}

export const newKey = () => ({ key: randomBytes(16).toString('hex'), scopes: ['hub.app', 'hub.speech'] })

export const newApp: Body<{ readonly id: string; readonly folder: string | undefined }> = async (io, given) => {
  const { newAppFolder } = await import('../emulator/processes/new-app.ts')
  const made = await newAppFolder(given.id, given.folder)
  // A shell interprets no character within single quotes, except the quote itself. Windows has only double quotes.
  const quoted = process.platform === 'win32' ? `"${made}"` : `'${made.replaceAll("'", "'\\''")}'`
  const typed = shownText(/[^\w./:\\-]/.test(made) ? quoted : made)
  io.print(`created ${shownText(made)}; try it:\n\n  npm test --prefix ${typed}\n  hub2mqtt emulate --app ${typed}\n`)
  return exitCodes.ok.code
}

type NewKey = { readonly data: string; readonly scope: readonly string[]; readonly name: string | undefined }

export const createKey: Body<NewKey> = async ({ print, warn }, { data, scope, name = '' }) => {
  using keys = await keysIn(data, { make: true })
  const { id, key } = keys.create(scope, name)
  print(key)
  // A script may read the key from standard output, so print the id to standard error.
  warn(`id ${id}; the key is not shown again`)
  return exitCodes.ok.code
}

export const listKeys: Body<{ readonly data: string }> = async ({ print }, { data }) => {
  using keys = await keysIn(data)
  for (const line of keys.list()) print(shownText(line))
  return exitCodes.ok.code
}

export const revokeKey: Body<{ readonly data: string; readonly id: string }> = async (_io, { data, id }) => {
  using keys = await keysIn(data)
  keys.revoke(id)
  return exitCodes.ok.code
}

async function keysIn(data: string, options: { readonly make?: true } = {}) {
  return (await import('../emulator/data/keys.ts')).keysOf(data, options)
}
