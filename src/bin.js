#!/usr/bin/env node
// Starts hub2mqtt with a Node that can run it. Plain JavaScript without dependencies, since an older Node must read it:
// the package brings its own Node as an optional dependency, and hands over to that one.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import module, { createRequire } from 'node:module'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NEEDED = 24
/** Set where an older Node has handed over. */
const HANDED_OVER = 'HUB2MQTT_HANDED_OVER'

// What is made of the sources is kept beside the packages, where only those can write who can change the program as
// well; a shared folder such as /tmp would let others slip code in. Where nothing can be written, nothing is kept.
const CACHE = fileURLToPath(new URL('../node_modules/.cache/hub2mqtt', import.meta.url))

const major = (version) => Number(version.split('.')[0])

/** The Node among the package's optional dependencies; npm installs the one that fits the machine. */
function bundledNode() {
  const { optionalDependencies = {} } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  const require = createRequire(import.meta.url)
  for (const name of Object.keys(optionalDependencies)) {
    try {
      const file = require.resolve(`${name}/package.json`)
      const { version, bin } = JSON.parse(readFileSync(file, 'utf8'))
      if (bin?.node === undefined || major(version) < NEEDED) continue
      const node = join(dirname(file), bin.node)
      if (existsSync(node)) return node
    } catch {
      // Not for this machine.
    }
  }
  return undefined
}

function handOver(node) {
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    // The channel carries no messages: its end tells the child that this process was killed.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, [HANDED_OVER]: '1' },
  })
  const forward = (signal) => {
    // A terminal sends Ctrl-C to the child as well; twice would look like impatience.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, forward)
  child.on('error', (error) => fail(`the Node at ${node} does not start: ${error.message}`))
  child.on('exit', (code, signal) => {
    for (const name of signals) process.off(name, forward)
    if (signal === null) process.exit(code ?? 1)
    // Ends the same way as the child did, so that a supervisor sees the signal; the code is for those it spares.
    process.exitCode = 128 + (constants.signals[signal] ?? 0)
    process.kill(process.pid, signal)
  })
}

/** Whoever ends the process that was started ends this one with it, whatever the signal was. */
function endWithLauncher() {
  if (process.env[HANDED_OVER] === undefined) return
  delete process.env[HANDED_OVER]
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  process.channel?.unref()
}

/**
 * Node strips types from sources by itself, but not below node_modules; and compiling when the package is made needs a
 * script of npm's, which many people switch off. What was stripped is kept, since that takes longer than all the rest.
 */
function stripTypesHere() {
  const here = fileURLToPath(new URL('.', import.meta.url))
  module.registerHooks({
    load(url, context, nextLoad) {
      const file = url.startsWith('file:') && url.endsWith('.ts') ? fileURLToPath(url) : ''
      if (!file.startsWith(here)) return nextLoad(url, context)
      return { format: 'module', source: strip(readFileSync(file, 'utf8')), shortCircuit: true }
    },
  })
}

function strip(source) {
  // By content: the files of every package have the same date.
  const kept = join(CACHE, 'stripped', `${createHash('sha256').update(source).digest('hex')}.js`)
  try {
    return readFileSync(kept, 'utf8')
  } catch {
    // Not yet.
  }
  const { emitWarning } = process
  // It says that it is experimental, which no user needs to know.
  process.emitWarning = () => {}
  const stripped = module.stripTypeScriptTypes(source)
  process.emitWarning = emitWarning
  try {
    mkdirSync(dirname(kept), { recursive: true })
    // Whole or not at all: another process may start meanwhile.
    writeFileSync(`${kept}.${process.pid}`, stripped)
    renameSync(`${kept}.${process.pid}`, kept)
  } catch {
    // Nothing can be written here.
  }
  return stripped
}

function fail(reason) {
  console.error(`hub2mqtt: ${reason}`)
  process.exit(1)
}

if (major(process.versions.node) >= NEEDED) {
  endWithLauncher()
  module.enableCompileCache(CACHE)
  // A checkout runs its sources, whatever was made of them when; package and image bring a bundle, which starts faster.
  const source = new URL('./main.ts', import.meta.url)
  const bundle = new URL('../dist/main.js', import.meta.url)
  const isPackage = /[\\/]node_modules[\\/]/.test(fileURLToPath(source))
  const runsSources = existsSync(source) && !(isPackage && existsSync(bundle))
  if (runsSources && isPackage) stripTypesHere()
  await import((runsSources ? source : bundle).href).catch((error) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND' || !/package '/.test(error.message)) throw error
    fail('its packages are not installed; run npm ci first')
  })
} else {
  const node = bundledNode()
  if (node === undefined) {
    const found = process.versions.node
    fail(`needs Node ${NEEDED} or newer, and this is ${found}; install one, or run npm ci to get the packaged one`)
  } else {
    handOver(node)
  }
}
