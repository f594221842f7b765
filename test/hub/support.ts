/** An emulated hub and a hub client that is connected to it. Both are closed at the end of the test. */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import pino from 'pino'
import { test as base, onTestFinished } from 'vitest'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import type { Limiter } from '../../src/base/limiter.ts'
import { EmulatedHub, type EmulatedHubOptions } from '../../src/emulator/hub.ts'
import { HubClient, type HubClientOptions } from '../../src/hub/client.ts'
import { Hub, type HubOptions } from '../../src/hub/hub.ts'
import { until } from '../support/until.ts'

export const KEYS = { key: ['hub.app', 'hub.speech'] }
const log = pino({ level: 'silent' })

/** A clock that runs ten times as fast, so that pauses of seconds take tenths of a second. */
export const QUICK: Clock = {
  now: () => 10 * Date.now(),
  elapsed: () => 10 * performance.now(),
  after: (ms, task) => systemClock.after(ms / 10, task),
}

const startHub = (options?: EmulatedHubOptions) => EmulatedHub.start({ keys: KEYS, settleMs: 0, ...options })

export interface Watched extends AsyncDisposable {
  readonly hub: Hub
  readonly polls: boolean
  /** The states that the client reported, in order: `online`, `offline`, and those of the realtime channel. */
  readonly history: string[]
  /** Changes to apps that listeners received after the first list. */
  readonly news: string[]
}

export interface Surroundings {
  readonly clock?: Clock
  readonly random?: () => number
  readonly gate?: Limiter
}

function watch(
  url: string,
  options: Partial<HubOptions> = {},
  { clock = systemClock, random = () => 0.1, gate }: Surroundings = {},
): Watched {
  // A request may take two seconds of real time.
  const timeoutMs = clock === QUICK ? 20_000 : 2000
  const defaults: HubOptions = {
    url,
    apiKey: () => 'key',
    pathPrefix: 'auto',
    shows: () => true,
    realtime: true,
    pollInterval: 60_000,
    pollIntervalFallback: 10_000,
    timeoutMs,
    maxRequests: 4,
  }
  const hub = new Hub({ ...defaults, ...options }, { clock, log, random, ...(gate && { gate }) })
  const history: string[] = []
  const news: string[] = []
  hub.subscribe(({ online, reason, realtime }) =>
    history.push(`${online ? 'online' : 'offline'} ${realtime} ${reason}`),
  )
  hub.apps.subscribe(({ changes, silent }) => {
    if (!silent) for (const { id, after } of changes) news.push(`${id} ${after?.state ?? 'gone'}`)
  })
  hub.start()
  return { hub, polls: options.realtime === false, history, news, [Symbol.asyncDispose]: () => hub.destroy() }
}

export const connected = ({ hub }: Watched) => until('realtime', () => hub.status.realtime === 'connected')
export const listed = ({ hub }: Watched) => until('the list', () => hub.apps.complete && hub.status.online)
async function ready(watched: Watched): Promise<Watched> {
  await (watched.polls ? listed(watched) : connected(watched))
  return watched
}
export const anApp = (hub: EmulatedHub) => [...hub.apps.values()].find(({ state }) => state === 'running')?.id ?? ''
export const known = ({ hub }: Watched, id: string) => hub.apps.all.get(id)

export const asked = (hub: EmulatedHub, operation: string) =>
  hub.requests.filter((request) => request.operation === operation).length

/** Returns whether the client's apps equal the apps of the emulated hub. */
export const agree = (emulated: EmulatedHub, { hub }: Watched) =>
  emulated.apps.size === hub.apps.all.size &&
  [...emulated.apps.values()].every(({ id, state, version }) => {
    const app = hub.apps.all.get(id)
    return app?.state === state && app?.version === version
  })

interface Listening extends AsyncDisposable {
  readonly server: Server
  readonly port: number
  readonly url: string
}

async function listen(listener: RequestListener, wanted = 0): Promise<Listening> {
  const server = createServer(listener)
  server.listen(wanted, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  const close = async () => {
    server.closeAllConnections()
    if (server.listening) await once(server.close(), 'close')
  }
  return { server, port, url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: close }
}

interface Fixtures {
  readonly open: AsyncDisposableStack
  readonly emulate: typeof startHub
  readonly hold: typeof watch
  readonly listen: typeof listen
  /** Starts a hub and a client that has read its list and, unless it only polls, receives events. */
  readonly attach: (
    options?: Partial<HubOptions> & { readonly emulated?: EmulatedHubOptions },
    surroundings?: Surroundings,
  ) => Promise<{ readonly emulated: EmulatedHub; readonly watched: Watched }>
  /** The options of the client in `watched`. */
  readonly options: Partial<HubOptions>
  /** The clock and the other dependencies of all clients. */
  readonly surroundings: Surroundings
  /** The hub to which `watched` connects. */
  readonly emulated: EmulatedHub
  readonly watched: Watched
}

/** Each test starts its own hubs and clients, so that the tests of a file can run in parallel. */
export const test = base.extend<Fixtures>({
  open: async ({ task: _ }, use) => {
    await using open = new AsyncDisposableStack()
    await use(open)
  },
  emulate: ({ open }, use) => use(async (options) => open.use(await startHub(options))),
  hold: ({ open, surroundings }, use) =>
    use((url, options, given) => open.use(watch(url, options, { ...surroundings, ...given }))),
  listen: ({ open }, use) => use(async (...given) => open.use(await listen(...given))),
  attach: ({ emulate, hold }, use) =>
    use(async ({ emulated: wanted, ...options } = {}, given) => {
      const emulated = await emulate(wanted)
      return { emulated, watched: await ready(hold(emulated.url, options, given)) }
    }),
  options: {},
  surroundings: {},
  emulated: async ({ emulate }, use) => use(await emulate()),
  watched: async ({ emulated, hold, options }, use) => use(await ready(hold(emulated.url, options))),
})

/** Creates a client that calls the hub's operations. */
export function clientOf(url: string, options: Partial<HubClientOptions> = {}, clock: Clock = systemClock): HubClient {
  const defaults = {
    apiKey: () => 'key',
    timeoutMs: 5000,
    maxRequests: 4,
    pathPrefix: 'auto',
    hasApp: () => true,
  } as const
  return new HubClient({ url, ...defaults, ...options }, clock)
}

function untilFinished<T extends AsyncDisposable>(started: T): T {
  onTestFinished(() => started[Symbol.asyncDispose]())
  return started
}

/** Like the fixtures, for tests that run one after the other. */
export const emulate: typeof startHub = async (options) => untilFinished(await startHub(options))
export const hold: typeof watch = (...given) => untilFinished(watch(...given))
export const serve = async (...given: Parameters<typeof listen>) => untilFinished(await listen(...given)).url
