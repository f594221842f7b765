import * as v from 'valibot'
import { type Clock, sleep } from '../../base/clock.ts'
import { systemCode } from '../../base/failures.ts'
import { fromHere } from '../../base/hosts.ts'
import type { LogLevels } from '../../bridge/log-level.ts'
import { addressWith, startToken, tokenFileOf } from '../../config/start-token.ts'
import { type HealthReport, LOG_LEVEL } from '../../contract/schemas.ts'
import type { Log } from '../../observability/log.ts'
import type { Metrics } from '../../observability/metrics.ts'
import { AccessControl, type Sessions } from './access.ts'
import { Feed, type FeedOptions } from './api/feed.ts'
import { type Hubs, Icons } from './api/icons.ts'
import type { FleetStatus, LiveMessage, LogLines, Refusals } from './api/protocol.ts'
import type { AppContext } from './api/routes.ts'
import { liveChannel } from './live.ts'
import { Page } from './page.ts'
import { json, text } from './reply.ts'
import { type HttpListener, listen, type RequestHandler, type Routes } from './server.ts'

export interface ListenerOptions extends Pick<AppContext, 'live' | 'topics' | 'version' | 'setup' | 'clean' | 'clock'> {
  readonly path?: string | null
  readonly bridge: AppContext['bridge'] & {
    retained(): Iterable<Readonly<LiveMessage>>
    readonly logLevels?: Pick<LogLevels, 'fallback'>
    readonly evidence: AppContext['bridge']['evidence'] & { readonly samples: { readonly all: FeedOptions['usage'] } }
  }
  readonly hubs: { readonly all: Hubs; refusals(): Refusals }
  readonly fleet?: { status(): FleetStatus } | undefined
  readonly log: Log
  readonly health: () => HealthReport
  readonly metrics: Pick<Metrics, 'print'>
  /** The sessions that are already open; default: none. */
  readonly sessions?: Sessions | undefined
  /**
   * Called while no password is set, with an address that logs in a browser. The address must not be logged.
   * @param isRestored whether a reload has removed the password, so that the address is valid again
   */
  readonly onPage?: ((address: string, isRestored: boolean) => void) | undefined
  /** Called with a secret that the log must mask, such as the start-up token. */
  readonly onSecret?: (secret: string) => void
  /** Whether to try again, without a report, while the port is in use; default: no. */
  readonly retries?: boolean
}

const RETRY_MS = 10_000

const reasons = (port: number): Readonly<Record<string, string>> => ({
  EADDRINUSE: `port ${port} is in use; choose another http.port`,
  EACCES: `this user may not use port ${port}; choose another http.port, such as 8099`,
  EADDRNOTAVAIL: 'this machine has no such address; change http.host',
  ENOTFOUND: 'the name cannot be resolved; change http.host',
})

const OFF = 'The page and its API are disabled: http.page is false in the configuration.'

/**
 * Opens the listener. If that fails, logs the reason and returns `undefined` or, if it is opened later, no `url`. `feed`
 * is set only with the page.
 */
export async function openListener(options: ListenerOptions) {
  const { host, port, allowed_hosts: allowedHosts } = options.live.value.http
  const log = options.log.child({ part: 'http' })
  const page = options.live.value.http.page ? await openPage(options, log) : undefined
  const routes = { ...fixedRoutes(options), ...(!page && { '/': () => text(404, OFF) }) }
  const parts = { feed: page?.feed, reconfigured: page?.reconfigured }
  const open = async () => {
    const listener = await listen({ host, port, allowedHosts, routes, handler: page?.site, log })
    options.log.info({ url: listener.url }, page ? 'page, health and metrics' : 'health and metrics')
    page?.listening(fromHere(listener.url))
    return listener
  }
  try {
    return { ...(await open()), ...parts }
  } catch (error) {
    const code = systemCode(error) || 'unknown error'
    const why = reasons(port)[code] ?? code
    options.log.error({ host, port, reason: code }, `the HTTP listener cannot start: no page, no health: ${why}`)
    return code === 'EADDRINUSE' && options.retries
      ? { url: undefined, ...later(open, options.clock), ...parts }
      : undefined
  }
}

/** Opens the listener when its port is free. */
function later(open: () => Promise<HttpListener>, clock: Clock): AsyncDisposable {
  const end = new AbortController()
  const retry = async () => {
    for (;;) {
      await sleep(clock, RETRY_MS, end.signal)
      if (end.signal.aborted) return undefined
      const listener = await open().catch(() => undefined)
      if (listener !== undefined) return listener
    }
  }
  const opened = retry()
  return {
    async [Symbol.asyncDispose]() {
      end.abort()
      await (await opened)?.[Symbol.asyncDispose]()
    },
  }
}

function fixedRoutes({ health, metrics }: Pick<ListenerOptions, 'health' | 'metrics'>): Routes {
  return {
    // Any answer to `/livez` shows that the event loop is running.
    '/livez': () => (health().live ? text(200, 'ok') : text(503, health().problems.join('\n'))),
    '/readyz': () => {
      const { ready, problems } = health()
      return json(ready ? 200 : 503, { ready, problems })
    },
    // A supervisor must not restart the daemon because of a problem outside the daemon.
    '/healthz': () => json(health().live ? 200 : 503, health()),
    '/metrics': async () => {
      const { contentType, text: body } = await metrics.print()
      return { status: 200, type: contentType, body }
    },
  }
}

async function openPage(options: ListenerOptions, httpLog: AppContext['log']) {
  const { live, topics, bridge, hubs, fleet, path = null, clean, sessions, clock, log, onPage } = options
  const level = () => v.parse(LOG_LEVEL, log.level)
  const feed = new Feed({
    topics,
    retained: () => [...bridge.retained()].map(([topic, payload]) => [topic, clean(payload)]),
    refusals: () => hubs.refusals(),
    logLevel: level,
    usage: (ms) => bridge.evidence.samples.all(ms),
    fleet: fleet && (() => fleet.status()),
    clock,
  })
  const config = () => live.value.http
  const file = tokenFileOf(config(), path)
  let hadPassword = config().password !== null
  const token = await startToken(file, log, { keep: !hadPassword })
  log.addSecret(token)
  options.onSecret?.(token)
  let address: string | undefined
  let isShown = false
  /** Returns the token. Reports the page's address once at startup, and again after a reload removes the password. */
  const shown = () => {
    if (address === undefined || isShown) return token
    isShown = true
    onPage?.(addressWith(address, token), hadPassword)
    if (hadPassword) void startToken(file, log, { token })
    return token
  }
  const access = new AccessControl(config, shown, clock, sessions)
  const logLines = (after: string): LogLines => {
    const { fallback } = bridge.logLevels ?? {}
    const then = fallback && { level: fallback.level, remaining_ms: Math.round(fallback.remainingMs) }
    return { ...log.recent.after(after), level: level(), fallback: then ?? null }
  }
  const icons = new Icons(hubs.all, clock)
  const context = { ...options, path, access, feed, icons, logLines, page: new Page(), log: httpLog }
  return {
    site: siteOf(context),
    feed,
    listening(at: string) {
      address = at
      if (access.loginBy === 'token') shown()
    },
    /** Takes over a changed configuration. Must be called after each reload. */
    reconfigured() {
      if (config().password === null) return
      hadPassword = true
      isShown = false
    },
  }
}

export function siteOf(context: AppContext): RequestHandler {
  const { access } = context
  let listener: RequestHandler['answer'] | undefined
  return {
    hostOf(request) {
      const sender = access.senderOf(request)
      // The proxy has authenticated its users, so any host name is accepted.
      return sender.ingress ? null : sender.host
    },
    async answer(request, response) {
      listener ??= (await import('./app.ts')).siteListener(context)
      await listener(request, response)
    },
    ...liveChannel(context),
  }
}
