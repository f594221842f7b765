/** An emulated hub and the hub client that is held on to it, each ended with its test. */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import pino from 'pino'
import { onTestFinished } from 'vitest'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import type { Limiter } from '../../src/base/limiter.ts'
import { EmulatedHub, type EmulatedHubOptions } from '../../src/emulator/hub.ts'
import { Hub, type HubOptions } from '../../src/hub/hub.ts'
import { until } from '../support/until.ts'

export const KEYS = { key: ['hub.app', 'hub.speech'] }
const log = pino({ level: 'silent' })

export async function emulate(options: EmulatedHubOptions = {}): Promise<EmulatedHub> {
  const hub = await EmulatedHub.start({ keys: KEYS, settleMs: 0, ...options })
  onTestFinished(() => hub.close())
  return hub
}

export interface Watched {
  readonly hub: Hub
  /** `online`/`offline` and what became of the realtime channel, in order. */
  readonly history: string[]
  /** What listeners were told of apps after the first list. */
  readonly news: string[]
}

export interface Surroundings {
  readonly clock?: Clock
  readonly random?: () => number
  readonly gate?: Limiter
}

export function hold(
  url: string,
  options: Partial<HubOptions> = {},
  { clock = systemClock, random = () => 0.1, gate }: Surroundings = {},
): Watched {
  const defaults: HubOptions = {
    url,
    apiKey: () => 'key',
    pathPrefix: 'auto',
    shows: () => true,
    realtime: true,
    pollInterval: 60_000,
    pollIntervalFallback: 10_000,
    timeoutMs: 2000,
    maxRequests: 4,
  }
  const hub = new Hub({ ...defaults, ...options }, { clock, log, random, ...(gate && { gate }) })
  onTestFinished(() => hub.destroy())
  const history: string[] = []
  const news: string[] = []
  hub.subscribe(({ online, reason, realtime }) =>
    history.push(`${online ? 'online' : 'offline'} ${realtime} ${reason}`),
  )
  hub.apps.subscribe(({ changes, silent }) => {
    if (!silent) for (const { id, after } of changes) news.push(`${id} ${after?.state ?? 'gone'}`)
  })
  hub.start()
  return { hub, history, news }
}

export const connected = ({ hub }: Watched) => until('realtime', () => hub.status.realtime === 'connected')
export const listed = ({ hub }: Watched) => until('the list', () => hub.apps.complete && hub.status.online)
export const anApp = (hub: EmulatedHub) => [...hub.apps.values()].find(({ state }) => state === 'running')?.id ?? ''
export const known = ({ hub }: Watched, id: string) => hub.apps.all.get(id)

/** How often the hub was asked for something. */
export const asked = (hub: EmulatedHub, operation: string) =>
  hub.requests.filter((request) => request.operation === operation).length

/** Whether what is known of the apps is what the hub has. */
export const agree = (emulated: EmulatedHub, { hub }: Watched) =>
  emulated.apps.size === hub.apps.all.size &&
  [...emulated.apps.values()].every(({ id, state, version }) => {
    const app = hub.apps.all.get(id)
    return app?.state === state && app?.version === version
  })

/** An HTTP server of the test's own; resolves with its URL. */
export async function serve(listener: RequestListener, port = 0): Promise<string> {
  const server = createServer(listener)
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return `http://127.0.0.1:${address.port}`
}
