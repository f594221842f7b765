import { Manager, type Socket } from 'socket.io-client'
import { Agent, type Dispatcher } from 'undici'
import { test as base, onTestFinished } from 'vitest'
import type { HubApps } from '../../src/emulator/core/hub-apps.ts'
import { type AppSeed, EmulatedHub, type EmulatedHubOptions } from '../../src/emulator/hub.ts'
import { recordOf } from '../../src/emulator/records.ts'
import { until } from '../support/until.ts'

export const KEY = 'secret'
export const HUE = 'com.athom.hue'
export const PUMP = 'net.lindqvist.heatpump'
export const BLINDS = 'io.bramblewood.blinds'
export const DOORBELL = 'nl.vandermolen.doorbell'

/** Starts a hub for one test. Its key has all permissions, and states change without delay. */
export async function hubOf(options: EmulatedHubOptions = {}): Promise<EmulatedHub> {
  const hub = await EmulatedHub.start({ keys: { [KEY]: ['hub'] }, settleMs: 0, ...options })
  onTestFinished(() => hub.close())
  return hub
}

/** Returns apps that do nothing, to use instead of simulated apps. */
export function backendOf(seeds: readonly AppSeed[]): HubApps {
  const nothing = () => {}
  return {
    records: new Map(seeds.map((seed) => [seed.id, recordOf(seed, 'newer')])),
    settings: () => new Map(),
    setSetting: nothing,
    unsetSetting: nothing,
    change: nothing,
    install: nothing,
    uninstall: nothing,
    enable: nothing,
    disable: nothing,
    restart: nothing,
    collectGarbage: nothing,
    crash: nothing,
    output: () => '',
    locales: () => ({}),
    request: () => Promise.resolve(null),
  }
}

export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  json: unknown
}

interface Asking {
  key?: string | null
  body?: unknown
  /** The text of the body, which is sent unchanged. */
  raw?: string
}

const METHODS: Record<string, Dispatcher.HttpMethod> = { POST: 'POST', PUT: 'PUT', DELETE: 'DELETE', PATCH: 'PATCH' }

/** Sends a real request on its own connection. `line` is the method and the path, which is relative to `/api/manager`. */
export async function ask(hub: { url: string }, line: string, { key = KEY, body, raw }: Asking = {}): Promise<Answer> {
  const [method = 'GET', target = '/'] = line.split(' ')
  const agent = new Agent({ connections: 1, pipelining: 1 })
  try {
    const path = /^\/(api|socket\.io)/.test(target) ? target : `/api/manager${target}`
    const sent = raw ?? (body === undefined ? null : JSON.stringify(body))
    const answer = await agent.request({
      origin: hub.url,
      path,
      method: METHODS[method] ?? 'GET',
      body: sent,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(sent === null ? {} : { 'content-type': 'application/json' }),
      },
    })
    const text = await answer.body.text()
    return { status: answer.statusCode, headers: answer.headers, text, json: parsed(text) }
  } finally {
    await agent.destroy()
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export interface Session {
  manager: Manager
  root: Socket
  api: Socket
  /** The received events and their payloads, in the order of arrival. */
  events: [string, unknown][]
  /** The reasons why sockets of this session were closed. */
  gone: string[]
}

export function acknowledged(
  socket: Socket,
  ...message: [string, ...unknown[]]
): Promise<[error: unknown, result: unknown]> {
  return new Promise((resolve) => {
    socket.emit(...message, (error: unknown, result: unknown) => resolve([error, result]))
  })
}

export function connected(hub: { url: string }): { manager: Manager; root: Socket } {
  const manager = new Manager(hub.url, { transports: ['websocket'], reconnection: false })
  onTestFinished(() => manager._close())
  return { manager, root: manager.socket('/') }
}

/** Resolves with `open` when the namespace is connected, or with the error if the hub refuses it. */
export function opened(api: Socket): Promise<unknown> {
  return new Promise((resolve) => api.once('connect', () => resolve('open')).once('connect_error', resolve))
}

/** Opens a session and its namespace; throws the error if the hub refuses one of them. */
export async function sessionOf(hub: { url: string }, key = KEY): Promise<Session> {
  const { manager, root } = connected(hub)
  const [error, welcome] = await acknowledged(root, 'handshakeClient', { token: key, homeyId: 'any' })
  if (error !== null) throw error
  const { token } = Object(welcome)
  const api = manager.socket('/api', { auth: { token } })
  const session: Session = { manager, root, api, events: [], gone: [] }
  api.on('homey:manager:apps', (event: string, payload: unknown) => session.events.push([event, payload]))
  api.on('disconnect', (reason) => session.gone.push(reason))
  const how = await opened(api)
  if (how !== 'open') throw how
  return session
}

export async function subscribed(hub: EmulatedHub, key = KEY): Promise<Session> {
  const session = await sessionOf(hub, key)
  const [error] = await acknowledged(session.api, 'subscribe', 'homey:manager:apps')
  if (error !== null) throw error
  return session
}

/** Sends a marker and waits for it, so that all earlier events have arrived. */
export async function events(hub: EmulatedHub, session: Session): Promise<[string, unknown][]> {
  hub.emit('marker', null)
  await until('the marker event', () => session.events.some(([event]) => event === 'marker'))
  const found = session.events.filter(([event]) => event !== 'marker')
  session.events.length = 0
  return found
}

/** A hub of its own for each test, and a session that receives its events. */
export const test = base.extend<{ readonly hub: EmulatedHub; readonly session: Session }>({
  hub: async ({ task: _ }, use) => use(await hubOf()),
  session: async ({ hub }, use) => use(await subscribed(hub)),
})
