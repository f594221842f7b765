// Runs one app: what the hub starts as a process of its own, in the app's folder. Plain JavaScript, since Node strips no
// types below node_modules, and nothing but this folder and the app's may be read.
import { findPackageJSON, registerHooks } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { format } from 'node:util'
import { createApp } from './app.js'
import { connect } from './connection.js'
import { createHub } from './hub.js'

const [id = '', version = '', main = 'app.js'] = process.argv.slice(2)
const folder = pathToFileURL(`${process.cwd()}/`).href
/** As they stand before the name of a file. */
const FOLDERS = [folder, fileURLToPath(folder)]
const own = new URL('./', import.meta.url).href

/** Characters; the hub takes no more. */
const MOST_OF_A_STACK = 16_384
/** How long the hub is given to take the message of a crash. */
const LAST_WORDS_MS = 1000

// A package.json above the folder is not the app's: it may belong to another project, and say `commonjs`.
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
// A terminal sends Ctrl-C to every process that was started in it; the hub decides what becomes of its apps.
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
connection.on('event', ({ uri, event, payload }) => hub.hear(uri, event, payload))
connection.on('setting', (change) => hub.hearSetting(change))
connection.on('crash', () => {
  throw new Error('crashed on demand')
})

try {
  const { default: start } = await import(new URL(main, folder).href)
  if (typeof start !== 'function') throw new TypeError(`${main} has no default export that is a function`)
  await start({ app: app.public, hub: hub.public, log })
  connection.send({ type: 'ready' })
} catch (error) {
  die(error)
}

/** Whether a package.json of the app holds for a file. Of one that may not be read, Node returns another path. */
function hasPackage(url) {
  const path = findPackageJSON(url) ?? ''
  return path.startsWith(fileURLToPath(folder)) && path.endsWith('package.json')
}

/** The stack as the app's developer knows it: the app's files, not where the hub keeps them. */
function worded(error) {
  const text = error instanceof Error && typeof error.stack === 'string' ? error.stack : format(error)
  return FOLDERS.reduce((shorter, place) => shorter.replaceAll(place, '/'), text).replaceAll(own, 'hub:')
}

function die(error) {
  const message = worded(error)
  // If an ES module cannot be parsed, Node prints the place only for an uncaught error.
  const isUnparsed = error instanceof SyntaxError && !FOLDERS.some((place) => String(error.stack).includes(place))
  if (!isUnparsed) console.error(message)
  const end = () => {
    process.off('uncaughtException', die)
    if (isUnparsed) throw error
    process.exit(1)
  }
  connection.send({ type: 'crash', message: message.slice(0, MOST_OF_A_STACK) }, end)
  setTimeout(end, LAST_WORDS_MS)
}
