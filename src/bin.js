#!/usr/bin/env node
// Starts hub2mqtt with a suitable Node. If the current Node is too old, starts the Node that the package installs as an
// optional dependency. This file is plain JavaScript without dependencies, because an older Node must be able to run it.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import module, { createRequire } from 'node:module'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NEEDED = 24
/** Set in a process that an older Node has started. */
const HANDED_OVER = 'HUB2MQTT_HANDED_OVER'

// Compiled code is stored beside the packages, because only users who can change the program can write there. In a
// shared folder such as /tmp, other users could insert code. If the folder is not writable, nothing is stored.
const CACHE = fileURLToPath(new URL('../node_modules/.cache/hub2mqtt', import.meta.url))

const major = (version) => Number(version.split('.')[0])

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
      // npm has not installed this package, because it is for a different kind of machine.
    }
  }
  return undefined
}

function handOver(node) {
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    // The channel carries no messages. If this process is killed, the channel closes, and the child ends.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, [HANDED_OVER]: '1' },
  })
  const forward = (signal) => {
    // A terminal also sends Ctrl-C to the child, so forwarding the signal would deliver it twice.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, forward)
  child.on('error', (error) => fail(`the Node at ${node} does not start: ${error.message}`))
  child.on('exit', (code, signal) => {
    for (const name of signals) process.off(name, forward)
    if (signal === null) process.exit(code ?? 1)
    // End with the child's signal, so that a supervisor sees it. The exit code is used if the signal does not end Node.
    process.exitCode = 128 + (constants.signals[signal] ?? 0)
    process.kill(process.pid, signal)
  })
}

/** Ends this process when the older Node that started it ends, for any reason. */
function endWithLauncher() {
  if (process.env[HANDED_OVER] === undefined) return
  delete process.env[HANDED_OVER]
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  process.channel?.unref()
}

/**
 * Handles signals until the daemon does. Otherwise, SIGHUP (reload) would kill the process, and PID 1 of a container
 * would ignore SIGINT and SIGTERM.
 */
function handleEarlySignals() {
  const [command = 'run'] = process.argv.slice(2)
  if (!['run', 'demo'].includes(command) && !command.startsWith('-')) return
  process.on('SIGHUP', () => {})
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.exit(0)
    })
  }
}

/** Strips the types from sources below node_modules, because Node does not strip them there. */
function stripTypesHere() {
  const here = fileURLToPath(new URL('.', import.meta.url))
  module.registerHooks({
    load(url, context, nextLoad) {
      const file = url.startsWith('file:') && url.endsWith('.ts') ? fileURLToPath(url) : ''
      if (!file.startsWith(here)) return nextLoad(url, context)
      return { format: 'module', source: strip(file), shortCircuit: true }
    },
  })
}

function strip(file) {
  const { emitWarning } = process
  // Suppress the warning that `stripTypeScriptTypes` is experimental.
  process.emitWarning = () => {}
  const stripped = module.stripTypeScriptTypes(readFileSync(file, 'utf8'))
  process.emitWarning = emitWarning
  return stripped
}

function fail(reason) {
  console.error(`hub2mqtt: ${reason}`)
  process.exit(1)
}

if (major(process.versions.node) >= NEEDED) {
  // With this variable, libraries would print every packet, including passwords. The bundle contains no such output.
  delete process.env.DEBUG
  handleEarlySignals()
  endWithLauncher()
  module.enableCompileCache(CACHE)
  // A checkout runs its sources. The package and the image run the bundle, which starts faster.
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
