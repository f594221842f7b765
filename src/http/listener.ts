/** Opens the listener for health and metrics, without which the bridge does its work all the same. */
import type { Config } from '../config/options.ts'
import type { HealthReport } from '../contract/schemas.ts'
import type { Log } from '../log/log.ts'
import type { Metrics } from '../metrics/family.ts'
import { routes } from './routes.ts'
import { type HttpListener, listen } from './server.ts'

export interface ListenerOptions {
  readonly config: Config
  readonly log: Log
  readonly health: () => HealthReport
  readonly metrics: Metrics
}

/** `undefined`, and a line in the log, if it cannot be opened. */
export async function openListener({
  config,
  log,
  health,
  metrics,
}: ListenerOptions): Promise<HttpListener | undefined> {
  const { host, port, allowed_hosts: allowedHosts } = config.http
  try {
    const listener = await listen({
      host,
      port,
      allowedHosts,
      routes: routes({ health, metrics: () => metrics.print() }),
      log: log.child({ part: 'http' }),
    })
    log.info({ url: listener.url }, 'health and metrics')
    return listener
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    const why = code === 'EADDRINUSE' ? `port ${port} is taken; choose another http.port` : code
    log.error({ host, port, reason: code }, `no health and metrics over HTTP: ${why}`)
    return undefined
  }
}
