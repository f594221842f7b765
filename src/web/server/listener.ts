/** Opens the listener for the page, its API, health and metrics, without which the bridge does its work all the same. */

import { fromHere } from '../../base/hosts.ts'
import { addressWith, startToken, tokenFileOf } from '../../config/start-token.ts'
import type { HealthReport } from '../../contract/schemas.ts'
import type { Metrics } from '../../observability/family.ts'
import type { Log } from '../../observability/log.ts'
import { AccessControl } from './access.ts'
import { Feed } from './api/feed.ts'
import type { FleetStatus, LiveMessage, Refusals } from './api/protocol.ts'
import { Services, type ServicesOptions } from './api/services.ts'
import { Gate } from './gate.ts'
import { LiveChannel } from './live.ts'
import { Page } from './page.ts'
import { routes } from './routes.ts'
import { type HttpListener, listen, text } from './server.ts'
import type { Sessions } from './sessions.ts'

export interface ListenerOptions extends Omit<ServicesOptions, 'login' | 'feed' | 'hubs' | 'path'> {
  readonly path?: string | null
  readonly bridge: ServicesOptions['bridge'] & {
    /** Renders what the bridge itself retains. */
    retained(): Iterable<Readonly<LiveMessage>>
  }
  readonly hubs: { readonly all: ServicesOptions['hubs']; refusals(): Refusals }
  readonly fleet?: { status(): FleetStatus } | undefined
  readonly log: Log
  readonly health: () => HealthReport
  readonly metrics: Metrics
  /** Who has logged in already; default: nobody. */
  readonly sessions?: Sessions | undefined
  /** Gets the address that logs a browser in, while there is no password. It is for people, and not for a log. */
  readonly onPage?: ((address: string) => void) | undefined
  /** Gets what must stand nowhere else, as in the log. */
  readonly onSecret?: (secret: string) => void
}

export interface OpenListener extends HttpListener {
  /** Wants to know what happens; `undefined` without a page. */
  readonly feed: Feed | undefined
}

const OFF = 'The page and its API are off: http.page is false in the configuration.'

/** `undefined`, and a line in the log, if it cannot be opened. */
export async function openListener(options: ListenerOptions): Promise<OpenListener | undefined> {
  const { live, health, metrics } = options
  const { host, port, allowed_hosts: allowedHosts } = live.value.http
  const log = options.log.child({ part: 'http' })
  const page = options.live.value.http.page ? await openPage(options) : undefined
  try {
    const listener = await listen({
      host,
      port,
      allowedHosts,
      routes: { ...routes({ health, metrics: () => metrics.print() }), ...(!page && { '/': () => text(404, OFF) }) },
      ...(page && { further: page.gate }),
      log,
    })
    options.log.info({ url: listener.url }, page ? 'page, health and metrics' : 'health and metrics')
    page?.listening(fromHere(listener.url))
    return { ...listener, feed: page?.feed }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    const why = code === 'EADDRINUSE' ? `port ${port} is taken; choose another http.port` : code
    options.log.error({ host, port, reason: code }, `nothing over HTTP, neither the page nor health: ${why}`)
    return undefined
  }
}

async function openPage(options: ListenerOptions) {
  const { live, topics, bridge, hubs, fleet, path = null, clean, sessions, clock, log, onPage } = options
  const feed = new Feed({
    topics,
    discoveryPrefix: live.value.discovery.prefix,
    retained: () => [...bridge.retained()].map(([topic, payload]) => [topic, clean(payload)]),
    refusals: () => hubs.refusals(),
    fleet: fleet && (() => fleet.status()),
    clock,
  })
  const config = () => live.value.http
  const file = tokenFileOf(config(), path)
  const keep = config().password === null
  const token = await startToken(file, log, { keep })
  log.addSecret(token)
  options.onSecret?.(token)
  let address: string | undefined
  /** Shown when it first counts: at the start, or when a changed configuration has no password any more. */
  const shown = () => {
    if (address !== undefined) {
      onPage?.(addressWith(address, token))
      if (!keep) void startToken(file, log, { token })
    }
    address = undefined
    return token
  }
  const access = new AccessControl(config, shown, clock, sessions)
  const services = new Services({ ...options, hubs: hubs.all, path, feed, login: () => access.loginBy })
  const gate = new Gate(config, access, services, new Page(), new LiveChannel(feed, clock))
  return {
    gate,
    feed,
    listening(at: string) {
      address = at
      if (access.loginBy === 'token') shown()
    },
  }
}
