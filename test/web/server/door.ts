/** The listener with the page and its API. Its bridge only records calls, and has neither a hub nor a broker. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { test as base, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import type { Requester } from '../../../src/bridge/requests.ts'
import { loadConfig } from '../../../src/config/load.ts'
import type { Config } from '../../../src/config/options.ts'
import { addressWith } from '../../../src/config/start-token.ts'
import type { Role } from '../../../src/contract/schemas.ts'
import { createTopics } from '../../../src/contract/topics.ts'
import type { Message } from '../../../src/mqtt/types.ts'
import { RecentLines } from '../../../src/observability/output.ts'
import { AccessControl } from '../../../src/web/server/access.ts'
import { Feed } from '../../../src/web/server/api/feed.ts'
import { Icons } from '../../../src/web/server/api/icons.ts'
import type { LogLines } from '../../../src/web/server/api/protocol.ts'
import { siteOf } from '../../../src/web/server/listener.ts'
import { Page } from '../../../src/web/server/page.ts'
import { json, type Reply } from '../../../src/web/server/reply.ts'
import type { Sender } from '../../../src/web/server/sender.ts'
import { listen } from '../../../src/web/server/server.ts'
import { temporaryFolder } from '../../support/at-end.ts'
import { variables } from '../../support/bridge.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { ownerOf } from '../../support/start-token.ts'

export const START_TOKEN = 'start-token-of-the-door-with-43-characters-'
export const owner = ownerOf(addressWith('http://localhost/', START_TOKEN))

export const TOKENS = JSON.stringify({
  restarter: { token: 'token-that-may-everything', access: 'full' },
  wallboard: { token: 'token-that-may-only-look', access: 'read' },
})
export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
export const full = bearer('token-that-may-everything')
export const reader = bearer('token-that-may-only-look')
export const EVERYWHERE = { HTTP_HOST: '0.0.0.0' }
/** A client whose address the test sets. */
export const SENDER: Sender = {
  address: '',
  trusted: false,
  local: false,
  scheme: undefined,
  host: undefined,
  ingress: false,
}

export const credentials = (password: string, headers: Readonly<Record<string, string>> = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify({ password }),
})

/** Returns the cookie of a response as a browser would send it. */
export const cookieOf = ({ headers }: Pick<Answered, 'headers'>) => headers['set-cookie']?.[0]?.split(';')[0] ?? ''

/** Sends a string, and resolves with everything that the server sends before it closes the connection. */
export async function rawAnswer(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  socket.write(text)
  let answer = ''
  for await (const chunk of socket) answer += String(chunk)
  return answer
}

interface DoorOptions {
  /** Environment variables without the prefix `HUB2MQTT_`. */
  readonly env?: Readonly<Record<string, string>>
  readonly clock?: Clock
  readonly role?: Role
  /** The duration of a command, in real milliseconds. */
  readonly commandMs?: number
  /** Removes secrets from the answers to commands. By default, it changes nothing. */
  readonly clean?: (text: string) => string
  /** Files of the built page by name; if missing, the page is not built. */
  readonly page?: Readonly<Record<string, string>>
  readonly reply?: Reply
  /** Registers a function that closes everything; default: `onTestFinished`. Concurrent tests must pass their own. */
  readonly atEnd?: (close: () => PromiseLike<void>) => void
}

export interface Told {
  readonly topic: string
  readonly payload: string
  readonly by: string
}

export interface Answered {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly code: unknown
}

export interface Asking {
  readonly method?: string
  /** The port of a proxy in front of the listener; default: the port of the listener. */
  readonly port?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const loaded = (env: Readonly<Record<string, string>>): Config => {
  const nowhere = { HUB_URL: 'http://127.0.0.1:1', MQTT_URL: 'mqtt://127.0.0.1:1' }
  const all = { ...nowhere, HUB_API_KEY: 'key-of-the-hub', ...env }
  return loadConfig({ env: variables(all) }).config
}

/** Returns the access control of a page with this password, which a reload may change. */
export const accessWith = (password: string | (() => string), clock: Clock = new FakeClock()) =>
  new AccessControl(
    () => loaded({ HTTP_PASSWORD: typeof password === 'string' ? password : password() }).http,
    () => '',
    clock,
  )

const codeOf = (body: string): unknown => {
  try {
    return JSON.parse(body)?.error?.code
  } catch {
    return undefined
  }
}

export async function openDoor({
  env = {},
  clock = new FakeClock(),
  role = 'active',
  commandMs = 0,
  clean = (text) => text,
  page = {},
  reply,
  atEnd = onTestFinished,
}: DoorOptions = {}) {
  const live = { value: loaded(env) }
  const topics = createTopics('b')
  const retained = new Map<string, string>()
  const feed = new Feed({
    topics,
    retained: () => retained,
    refusals: () => ({ home: {} }),
    logLevel: () => 'info',
    usage: () => [],
    clock,
  })
  const told: Told[] = []
  const bridge = {
    role,
    evidence: {
      history: () => ({ resolution_seconds: 60, cpu_percent: [], memory_bytes: [], source: 'bridge' as const }),
    },
    command({ topic, payload }: Message, { by, reply }: Requester) {
      if (role !== 'active') return false
      told.push({ topic, payload: payload.toString(), by })
      const answer = () => reply({ outcome: { ok: true, json: 'null' }, payload: '{"ok":true}' })
      if (commandMs === 0) answer()
      else systemClock.after(commandMs, answer)
      return true
    },
  }
  const config = () => live.value.http
  const access = new AccessControl(config, () => START_TOKEN, clock)
  const folder = folderWith(page)
  const warnings: string[] = []
  const log = { warn: (_: object, message: string) => void warnings.push(message) }
  const recent = new RecentLines()
  const context = {
    topics,
    feed,
    bridge,
    live,
    access,
    icons: new Icons(new Map(), clock),
    logLines: (after: string): LogLines => ({ ...recent.after(after), level: 'info', fallback: null }),
    path: null,
    clean,
    page: reply === undefined ? new Page(() => Promise.resolve(folder)) : { answer: async () => reply },
    version: '1.2.3',
    clock,
    log,
  }
  const listener = await listen({
    host: config().host,
    port: 0,
    allowedHosts: config().allowed_hosts,
    routes: { '/livez': () => json(200, 'alive') },
    handler: siteOf(context),
    log,
  })
  atEnd(() => listener[Symbol.asyncDispose]())
  const port = Number(new URL(listener.url).port)
  const here = `127.0.0.1:${port}`
  const ask = (path: string, { method = 'GET', headers = {}, body, port: through = port }: Asking = {}) =>
    new Promise<Answered>((resolve, reject) => {
      const asked = request({ host: '127.0.0.1', port: through, path, method, headers, agent: false }, (response) => {
        let text = ''
        response.on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text, code: codeOf(text) })
        })
        response.on('error', reject)
      })
      asked.on('error', reject)
      asked.end(body)
    })
  return {
    port,
    hold(topic: string, payload: string) {
      retained.set(topic, payload)
      feed.held(topic, payload)
    },
    told,
    recent,
    warnings,
    ask,
    askAsOwner: (path: string, { headers, ...asking }: Asking = {}) =>
      ask(path, { ...asking, headers: { ...owner, ...headers } }),
    origin: `http://${here}`,
    /** Replaces the options, like a reload of the configuration. */
    reconfigure(changed: Readonly<Record<string, string>>) {
      live.value = loaded(changed)
    },
    /** Resolves with the cookie as a browser would send it. */
    async login(password: string, headers: Asking['headers'] = {}): Promise<string> {
      return cookieOf(await ask('/api/login', credentials(password, { origin: `http://${here}`, ...headers })))
    },
    webSocket(headers: Readonly<Record<string, string>> = {}, at = here) {
      const socket = new WebSocket(`ws://${at}/api/live`, { headers })
      onTestFinished(() => socket.terminate())
      return socket
    },
  }
}

/** A listener of its own for each test, on this machine, without a password. */
export const it = base.extend<{ readonly door: Awaited<ReturnType<typeof openDoor>> }>({
  door: async ({ task: _ }, use) => use(await openDoor()),
})

/** Resolves with `open`, or with the status of the refusal. */
export function fateOf(socket: WebSocket): Promise<'open' | number> {
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve('open'))
    socket.once('unexpected-response', (_, { statusCode }) => resolve(statusCode ?? 0))
    socket.once('error', reject)
  })
}

function folderWith(files: Readonly<Record<string, string>>): string | undefined {
  if (Object.keys(files).length === 0) return undefined
  const root = temporaryFolder()
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), text)
  }
  return root
}
