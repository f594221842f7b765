// Runs one app. The hub starts this file as a separate process, which may read only this folder and the app's folder.
// The file is plain JavaScript, because Node does not strip types below node_modules.
import { findPackageJSON, registerHooks } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { format } from 'node:util'
import { createApp } from './app.js'
import { connect } from './connection.js'
import { createHub } from './hub.js'

const [id = '', version = '', main = 'app.js'] = process.argv.slice(2)
const folder = pathToFileURL(`${process.cwd()}/`).href
/** The forms in which the app's folder appears in a stack: as a URL and as a path. */
const FOLDERS = [folder, fileURLToPath(folder)]
const own = new URL('./', import.meta.url).href

/** Maximum length of a stack, in characters. */
const MAX_STACK_LENGTH = 16_384
/** Time limit for the hub to read the message of a crash. */
const CRASH_MESSAGE_MS = 1000

// Ignore a package.json above the app's folder, because it may belong to a project with the type `commonjs`.
registerHooks({
  load(url, context, nextLoad) {
    const isScript = context.format === 'commonjs' && url.endsWith('.js') && url.startsWith(folder)
    return nextLoad(url, isScript && !hasPackage(url) ? { ...context, format: 'module' } : context)
  },
})

const connection = connect()
const app = createApp(id, version, connection)
const hub = createHub(connection)
const log = (...words) => console.log(...words)

process.on('uncaughtException', die)
// A terminal sends Ctrl-C to all of its processes, but only the hub stops its apps.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {
  app.stop().then(() => process.exit(0), die)
})

connection.serve('request', (message) => app.answer(message))
connection.serve('gc', () => {
  globalThis.gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  return null
})
connection.serve('usage', () => {
  const { user, system } = process.cpuUsage()
  return { cpuMs: (user + system) / 1000, mem: process.memoryUsage.rss() }
})
connection.on('event', ({ uri, event, payload }) => hub.emit(uri, event, payload))
connection.on('setting', (change) => hub.emitSetting(change))
connection.on('crash', () => {
  throw new Error('crashed on demand')
})

try {
  const { default: start } = await import(new URL(main, folder).href)
  if (typeof start !== 'function') throw new TypeError(`${main} has no function as its default export`)
  await start({ app: app.public, hub: hub.public, log })
  connection.send({ type: 'ready' })
} catch (error) {
  die(error)
}

/**
 * Whether a package.json in the app's folder applies to a script. The path is checked, because `findPackageJSON`
 * returns some other path if it cannot read the package.json.
 */
function hasPackage(url) {
  const path = findPackageJSON(url) ?? ''
  return path.startsWith(fileURLToPath(folder)) && path.endsWith('package.json')
}

/** Returns the stack with paths relative to the app's folder. */
function worded(error) {
  const text = error instanceof Error && typeof error.stack === 'string' ? error.stack : format(error)
  return FOLDERS.reduce((shorter, place) => shorter.replaceAll(place, '/'), text).replaceAll(own, 'hub:')
}

function die(error) {
  const message = worded(error)
  // If an ES module cannot be parsed, Node prints the location only if the error is not caught.
  const isUnparsed = error instanceof SyntaxError && !FOLDERS.some((place) => String(error.stack).includes(place))
  if (!isUnparsed) console.error(message)
  const end = () => {
    process.off('uncaughtException', die)
    if (isUnparsed) throw error
    process.exit(1)
  }
  connection.send({ type: 'crash', message: message.slice(0, MAX_STACK_LENGTH) }, end)
  setTimeout(end, CRASH_MESSAGE_MS)
}
