/** Opens the listener for the page, its API, health and metrics, without which the bridge does its work all the same. */
import type { Feed } from '../api/feed.ts'
import { Services, type ServicesOptions } from '../api/services.ts'
import type { Clock } from '../base/clock.ts'
import { fromHere } from '../base/hosts.ts'
import type { Live } from '../config/options.ts'
import type { HealthReport } from '../contract/schemas.ts'
import type { Log } from '../log/log.ts'
import type { Metrics } from '../metrics/family.ts'
import { AccessControl } from './access.ts'
import { Gate } from './gate.ts'
import { LiveChannel } from './live.ts'
import { Page } from './page.ts'
import { routes } from './routes.ts'
import { type HttpListener, listen, text } from './server.ts'
import type { Sessions } from './sessions.ts'
import { addressWith, startToken, tokenFileOf } from './start-token.ts'

export interface ListenerOptions {
  readonly live: Live
  readonly log: Log
  readonly health: () => HealthReport
  readonly metrics: Metrics
  readonly feed: Feed
  readonly services: Omit<ServicesOptions, 'login' | 'feed' | 'clock' | 'live'>
  /** Who has logged in already; default: nobody. */
  readonly sessions?: Sessions | undefined
  /** Gets the address that logs a browser in, while there is no password. It is for people, and not for a log. */
  readonly onPage?: ((address: string) => void) | undefined
  /** Gets what must stand nowhere else. */
  readonly addSecret: (secret: string) => void
  readonly clock: Clock
}

const OFF = 'The page and its API are off: http.page is false in the configuration.'

/** `undefined`, and a line in the log, if it cannot be opened. */
export async function openListener(options: ListenerOptions): Promise<HttpListener | undefined> {
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
    return listener
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    const why = code === 'EADDRINUSE' ? `port ${port} is taken; choose another http.port` : code
    options.log.error({ host, port, reason: code }, `nothing over HTTP, neither the page nor health: ${why}`)
    return undefined
  }
}

async function openPage(options: ListenerOptions) {
  const { live, feed, services, sessions, clock, log, onPage, addSecret } = options
  const config = () => live.value.http
  const file = tokenFileOf(config(), services.path)
  const keep = config().password === null
  const token = await startToken(file, log, { keep })
  addSecret(token)
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
  const access = new AccessControl({ config, sessions, startToken: shown, clock })
  const gate = new Gate({
    config,
    access,
    services: new Services({ ...services, live, feed, clock, login: () => access.loginBy }),
    page: new Page(),
    live: new LiveChannel({ feed, clock }),
  })
  return {
    gate,
    listening(at: string) {
      address = at
      if (access.loginBy === 'token') shown()
    },
  }
}
