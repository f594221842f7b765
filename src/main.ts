/** The program: reads the command line and the environment, and says with its exit code how it ended. */
import { existsSync } from 'node:fs'
import type { RunOptions } from './app.ts'
import { systemClock } from './base/clock.ts'
import { VERSION } from './base/version.ts'
import { limitHeap, limitHeapAtRest, takeLittleMemory } from './cli/memory.ts'
import { exitCodes, parseCommandLine, UsageError } from './cli/parse.ts'
import { progress, waiting } from './cli/progress.ts'
import { daemonSignals, endSignal, stopSignal } from './cli/signals.ts'
import type { Loaded, LoadOptions } from './config/load.ts'
import { ConfigError } from './config/mistakes.ts'
import type { Config } from './config/options.ts'
import { shownJson, shownText } from './observability/controls.ts'
import type { Log } from './observability/log.ts'
import type { firstRun } from './web/server/first-run.ts'

const { ok, failed, usage } = exitCodes

/** Those that run until they are stopped. */
const LASTING = new Set(['run', 'demo', 'emulate'])

function main(): number | Promise<number> {
  const line = parseCommandLine(process.argv.slice(2))
  if (!LASTING.has(line.command)) {
    takeLittleMemory()
    outliveReaders()
  }
  switch (line.command) {
    case 'help':
      console.log(line.text)
      return ok.code
    case 'version':
      console.log(VERSION)
      return ok.code
    case 'check-config':
      return line.connect ? doctor(line.config) : checkConfig(line.config)
    case 'doctor':
      return doctor(line.config)
    case 'conformance':
      return conformance(line)
    case 'hash-password':
      return printHash()
    case 'cleanup':
      return cleanupCommand(line)
    case 'health':
      return health(line)
    case 'open':
      return printPage(line)
    case 'call':
      return callCommand(line)
    case 'run':
      return daemon(line.config, process.env)
    case 'demo':
      return demo(line)
    case 'emulate':
      return emulateHub(line)
    case 'emulate new-app':
      return newApp(line)
    case 'emulate keys create':
      return createKey(line)
    case 'emulate keys list':
      return listKeys(line.data)
    case 'emulate keys revoke':
      return revokeKey(line)
  }
}

async function checkConfig(file: string | undefined): Promise<number> {
  const { loadConfig } = await import('./config/load.ts')
  const { describeConfig } = await import('./config/describe.ts')
  const { config, warnings } = loadConfig({ file, env: process.env })
  for (const warning of warnings) console.error(`warning: ${warning}`)
  console.log(describeConfig(config))
  return ok.code
}

/** Exit code 0 says that the daemon needs no restart; with `--ready`, that it can do its work. */
async function health(line: Extract<ReturnType<typeof parseCommandLine>, { command: 'health' }>): Promise<number> {
  const { loadHttpConfig } = await import('./config/load.ts')
  const { askHealth } = await import('./cli/running.ts')
  // A file that was named has been there; one that the daemon once read may be gone or broken by now.
  if (line.config !== undefined && !existsSync(line.config))
    throw new UsageError(`${line.config}: there is no such file`)
  const { enabled, host, port } = loadHttpConfig({ file: line.config, env: process.env })
  if (!enabled || port === 0) {
    const why = enabled ? 'http.port is 0: only the log has the port' : 'http.enabled is false'
    console.error(`hub2mqtt: ${why}, so that nobody can be asked`)
    return failed.code
  }
  try {
    const { status, body, isOurs } = await askHealth({ host, port }, line.ready ? '/readyz' : '/healthz')
    if (!isOurs) return anotherProgram(host, port)
    console.log(body.trimEnd())
    return status === 200 ? ok.code : failed.code
  } catch (error) {
    console.error(`hub2mqtt: no answer from ${host}:${port}: ${error instanceof Error ? error.message : String(error)}`)
    return failed.code
  }
}

function anotherProgram(host: string, port: number): number {
  console.error(`hub2mqtt: what answers at ${host}:${port} is another program`)
  return failed.code
}

/** The address that logs a browser in, as the daemon with the same configuration keeps its token. */
async function printPage({ config: file }: Line<'open'>): Promise<number> {
  const { configFileOf, hasPassword, loadHttpConfig } = await import('./config/load.ts')
  const { pageAddress } = await import('./config/start-token.ts')
  const { askHealth } = await import('./cli/running.ts')
  const request = { file, env: process.env }
  const http = loadHttpConfig(request)
  const address = pageAddress(http, configFileOf(request), hasPassword(request))
  // The token is for hub2mqtt alone. While nobody answers, it may be about to start.
  const answer = await askHealth(http, '/healthz').catch(() => undefined)
  if (answer?.isOurs === false) return anotherProgram(http.host, http.port)
  console.log(address)
  return ok.code
}

const BUFFER_POOL_BYTES = 512

type Line<C> = Extract<ReturnType<typeof parseCommandLine>, { readonly command: C }>

async function callCommand({ config: file, topic, payload, timeoutMs }: Line<'call'>): Promise<number> {
  const { loadConfig } = await import('./config/load.ts')
  const { brokerAccess, brokerUrls } = await import('./config/broker-access.ts')
  const { call } = await import('./cli/call.ts')
  const { config } = loadConfig({ file, env: process.env, requireHub: false })
  const { mqtt } = config
  const urls = brokerUrls(mqtt)
  if (urls.length === 0) throw new UsageError('mqtt.embedded.port: with 0 nobody knows the port; choose one')
  const broker = brokerAccess(mqtt, urls)
  const stop = waiting('waiting for the answer')
  const calling = call({ broker, base: mqtt.base_topic, topic, payload, timeoutMs, clock: systemClock })
  const answer = await calling.finally(stop)
  console.log(shownJson(answer.text))
  return answer.ok ? ok.code : failed.code
}

async function doctor(file: string | undefined): Promise<number> {
  const { loadConfig } = await import('./config/load.ts')
  const { examine, lineOf, reportOf } = await import('./cli/doctor/doctor.ts')
  const { config, secrets, warnings } = loadConfig({ file, env: process.env })
  const findings = []
  let stop = waiting('looking')
  for await (const finding of examine({ config, secrets, warnings, clock: systemClock })) {
    stop()
    findings.push(finding)
    console.log(lineOf(finding))
    stop = waiting('looking further')
  }
  stop()
  console.log(`\nFor a bug report:\n\n${reportOf(findings, config, VERSION)}`)
  return findings.some(({ outcome }) => outcome === 'problem') ? failed.code : ok.code
}

/** Exit code 0: the hub can be worked with, whatever it does otherwise than expected, and the app is as it was. */
async function conformance(line: Line<'conformance'>): Promise<number> {
  const { conformanceRequest } = await import('./cli/conformance.ts')
  const { examine } = await import('./cli/conformance/conformance.ts')
  const { reportText } = await import('./cli/conformance/text.ts')
  const { Scrubber } = await import('./observability/scrub.ts')
  const request = conformanceRequest(line, process.env['HUB2MQTT_HUB_API_KEY'])
  let stop = () => {}
  const onStep = (step: string) => {
    stop()
    stop = waiting(step)
  }
  const stops = () => {
    const signal = endSignal()
    signal.addEventListener('abort', () => console.error('hub2mqtt: stopping; the app is put back first'))
    return signal
  }
  const options = { ...request, version: VERSION, clock: systemClock, onStep, stops }
  const report = await examine(options).finally(() => stop())
  const scrubber = new Scrubber([request.key])
  const text = () => scrubber.text(reportText(report)).split('\n').map(shownText).join('\n').trimEnd()
  console.log(line.json ? shownJson(scrubber.payload(JSON.stringify(report))) : text())
  return report.problems.length === 0 ? ok.code : failed.code
}

async function printHash(): Promise<number> {
  const { readPassword } = await import('./cli/read-password.ts')
  const { hashPassword } = await import('./base/secrets.ts')
  if (process.stdin.isTTY) console.error('the password, then Enter (it shows):')
  console.log(await hashPassword(await readPassword(process.stdin)))
  return ok.code
}

async function cleanupCommand({ config: file, yes, hubs, baseTopic, prefix }: Line<'cleanup'>): Promise<number> {
  const { loadConfig } = await import('./config/load.ts')
  const { config } = loadConfig({ file, env: process.env, requireHub: false })
  const { mqtt, discovery } = config
  const names = [...Object.keys(config.hubs), ...hubs]
  return await clean(mqtt, { base: baseTopic ?? mqtt.base_topic, prefix: prefix ?? discovery.prefix, hubs: names, yes })
}

interface Cleaning {
  readonly base: string
  readonly prefix: string
  readonly hubs: readonly string[]
  readonly yes: boolean
}

const CLEANUP_MS = 120_000

async function clean(mqtt: Config['mqtt'], { base, prefix, hubs, yes }: Cleaning): Promise<number> {
  const { brokerAccess } = await import('./config/broker-access.ts')
  const { cleanup } = await import('./cli/cleanup.ts')
  const { createTopics } = await import('./contract/topics.ts')
  if (mqtt.url === null) {
    console.log('nothing to clear: what the embedded broker holds ends with hub2mqtt')
    return ok.code
  }
  const broker = brokerAccess(mqtt, mqtt.url)
  const options = { broker, topics: createTopics(base), prefix, hubs, timeoutMs: CLEANUP_MS, clock: systemClock }
  const { found, left } = await cleanup({ ...options, clear: yes, onProgress: progress('cleared') })
  for (const topic of yes ? left : found) console.log(shownText(topic))
  if (found.length === 0) console.log(`nothing of a bridge with the base topic ${base} is on this broker`)
  else if (!yes) console.log(`\n${found.length} retained messages; hub2mqtt cleanup --yes clears them`)
  else if (left.length === 0) console.log(`cleared ${found.length} retained messages`)
  else console.error(`hub2mqtt: the broker refused to clear these ${left.length} of ${found.length} retained messages`)
  return left.length === 0 ? ok.code : failed.code
}

async function daemon(
  file: string | undefined,
  env: NodeJS.ProcessEnv,
  shown: Pick<RunOptions, 'onReady' | 'onPage'> = {},
): Promise<number> {
  // mqtt-packet keeps a few bytes for each length of packet it has seen, and each keeps the pool around it alive: with
  // pools of the usual size that is memory which grows for weeks.
  Buffer.poolSize = BUFFER_POOL_BYTES
  const { loadConfig } = await import('./config/load.ts')
  const { createLog } = await import('./observability/log.ts')
  const { run } = await import('./app.ts')
  const request = { file, env }
  const begun = await begin(request)
  const log = createLog({ ...begun.loaded.config.log, secrets: begun.loaded.secrets })
  diesLoudly(log)
  const { signal, onReload } = daemonSignals()
  let page: string | undefined
  const onPage = (address: string) => {
    // After a set-up it is the same; and not a line of the log, which may be kept where others read.
    if (address !== page) log.print(`the page, to look and to change things: ${address}`)
    page = address
  }
  const world = { version: VERSION, clock: systemClock, random: Math.random, log, signal, onReload, onPage, ...shown }
  const sessions = begun.problem && (await setUp(request, { ...begun, problem: begun.problem }, world))
  if (signal.aborted) return ok.code
  const loaded = sessions === undefined ? begun.loaded : loadConfig(request)
  const { secrets, warnings, fileIsEmpty } = loaded
  for (const secret of secrets) log.addSecret(secret)
  const hubs = Object.keys(loaded.config.hubs).length
  limitHeap(hubs)
  for (const warning of warnings) log.warn(warning)
  // A file that an editor has only begun to write must not take everything away.
  const load = () => loadConfig({ ...request, requireContent: !fileIsEmpty })
  const onReady = () => {
    limitHeapAtRest(hubs)
    shown.onReady?.()
  }
  await run({ ...loaded, load, ...(sessions && { sessions }), ...world, onReady })
  return ok.code
}

/** The configuration; with what is wrong with it, if all that it needs is a set-up. */
async function begin(request: LoadOptions): Promise<{ readonly loaded: Loaded; readonly problem?: ConfigError }> {
  const { loadConfig } = await import('./config/load.ts')
  try {
    return { loaded: loadConfig(request) }
  } catch (problem) {
    if (!(problem instanceof ConfigError)) throw problem
    const { loadUnfinished } = await import('./web/server/first-run.ts')
    return { loaded: loadUnfinished(problem, request), problem }
  }
}

/** Resolves when a hub is configured, or the signal aborts. */
async function setUp(...given: Parameters<typeof firstRun>) {
  const { firstRun } = await import('./web/server/first-run.ts')
  return await firstRun(...given)
}

/** The daemon beside a hub that is not there; only here is the emulator used in its place. */
async function demo({ config: file, broker }: Line<'demo'>): Promise<number> {
  const { loadConfig } = await import('./config/load.ts')
  const { emulate } = await import('./emulator/command.ts')
  const { freePorts, invitation, onBroker } = await import('./cli/demo.ts')
  const apiKey = await demoKey()
  await using emulation = await emulate({ port: 0, flavour: 'older', apiKeys: [apiKey] })
  const { hub } = emulation
  const { HUB2MQTT_HUB_API_KEY_FILE: _, ...given } = process.env
  const own = { HUB2MQTT_HUB_URL: hub.url, HUB2MQTT_HUB_API_KEY: apiKey.key, ...(broker && onBroker(broker)) }
  const { config: wanted } = loadConfig({ file, env: { ...given, ...own } })
  const env = { ...given, ...own, ...(await freePorts(wanted)) }
  const { config } = loadConfig({ file, env })
  const [app = ''] = hub.apps.keys()
  let page: string | undefined
  const onPage = (address: string) => {
    page = address
  }
  const code = await daemon(file, env, { onPage, onReady: () => console.log(invitation(config, app, page)) })
  if (broker === undefined) return code
  const { mqtt, discovery } = config
  return await clean(mqtt, {
    base: mqtt.base_topic,
    prefix: discovery.prefix,
    hubs: Object.keys(config.hubs),
    yes: true,
  })
}

/** A key of an emulated hub that may everything. */
async function demoKey() {
  const { randomBytes } = await import('node:crypto')
  return { key: randomBytes(16).toString('hex'), scopes: ['hub.app', 'hub.speech'] }
}

async function emulateHub(line: Line<'emulate'>): Promise<number> {
  const { emulate, parseApiKey } = await import('./emulator/command.ts')
  const { openControl } = await import('./emulator/control/server.ts')
  const given = line.apiKeys.map(parseApiKey)
  // Without a key nobody could use it. A file may have its own, and so may a data folder.
  const spare = given.length === 0 && line.file === undefined ? await demoKey() : undefined
  await using emulation = await emulate({
    ...line,
    apiKeys: given,
    spareKey: spare,
    onSpeak: (text) => console.log(`says: ${shownText(text)}`),
    onLine: (id, line) => console.log(`${id}: ${shownText(line)}`),
    tell: (problem) => console.error(`hub2mqtt: ${shownText(problem)}`),
  })
  const { hub } = emulation
  console.log(`emulated hub listening on ${hub.url}`)
  await using control = line.controlPort === undefined ? undefined : await openControl(hub, line.controlPort)
  if (control !== undefined) console.log(`its control port: ${control.url}`)
  if (spare !== undefined && !emulation.hasOwnKeys) {
    console.log(`its API key, made for this run: ${spare.key} (${spare.scopes.join(', ')})`)
  }
  const signal = stopSignal()
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
  return ok.code
}

async function newApp({ id, folder }: Line<'emulate new-app'>): Promise<number> {
  const { newAppFolder } = await import('./emulator/processes/new-app.ts')
  const made = await newAppFolder(id, folder)
  // Single quotes keep everything but themselves from a shell; Windows knows only double ones.
  const quoted = process.platform === 'win32' ? `"${made}"` : `'${made.replaceAll("'", "'\\''")}'`
  const typed = shownText(/[^\w./:\\-]/.test(made) ? quoted : made)
  console.log(`made ${shownText(made)}; try it:\n\n  npm test --prefix ${typed}\n  hub2mqtt emulate --app ${typed}\n`)
  return ok.code
}

async function createKey({ data, scopes, name }: Line<'emulate keys create'>): Promise<number> {
  const { keysOf } = await import('./emulator/data/keys-command.ts')
  using keys = keysOf(data, { make: true })
  const { id, key } = keys.create(scopes, name)
  console.log(key)
  // Apart from the key, so that a script can read that.
  console.error(`id ${id}; the key is not shown again`)
  return ok.code
}

async function listKeys(data: string): Promise<number> {
  const { keysOf } = await import('./emulator/data/keys-command.ts')
  using keys = keysOf(data)
  for (const line of keys.list()) console.log(shownText(line))
  return ok.code
}

async function revokeKey({ data, id }: Line<'emulate keys revoke'>): Promise<number> {
  const { keysOf } = await import('./emulator/data/keys-command.ts')
  using keys = keysOf(data)
  keys.revoke(id)
  return ok.code
}

/** A reader such as `head` may end first. What is under way goes to its end, and its exit code still tells how. */
function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
    })
  }
}

/** A mistake of ours that nobody caught: said with all its context, then the end, and the will tells the subscribers. */
function diesLoudly(log: Log): void {
  const die = (error: unknown, origin: string) => {
    log.fatal({ err: error, origin }, 'hub2mqtt made a mistake that it cannot go on from')
    process.exit(failed.code)
  }
  process.on('uncaughtException', die)
}

/** What can happen to anybody, with a message that says all there is to say. */
const EXPECTED = new Set([
  'PageAddressError',
  'CallError',
  'CleanupError',
  'SessionError',
  'EmbeddedBrokerError',
  'EmulatorOptionError',
  'HubDataError',
])

/** Mistakes of the user are told as lines; everything else, with its stack, is ours. */
function explain(error: unknown): number {
  if (error instanceof ConfigError || error instanceof UsageError) {
    for (const mistake of error instanceof ConfigError ? error.mistakes : [error.message])
      console.error(`hub2mqtt: ${mistake}`)
    return usage.code
  }
  const expected = error instanceof Error && EXPECTED.has(error.name)
  console.error(expected ? `hub2mqtt: ${error.message.split('\n').map(shownText).join('\n')}` : error)
  return expected && error.name === 'EmulatorOptionError' ? usage.code : failed.code
}

/** For goodbyes that nobody answers, such as that of a WebSocket to a hub that hangs: it would wait for half a minute. */
const LINGER_MS = 500

process.exitCode = await Promise.try(main).catch(explain)
setTimeout(() => process.exit(), LINGER_MS).unref()
