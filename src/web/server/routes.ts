/** What the listener answers: health for supervisors, metrics for Prometheus. */
import type { HealthReport } from '../../contract/schemas.ts'
import { json, type Reply, type Routes, text } from './server.ts'

export interface RouteSources {
  readonly health: () => HealthReport
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>
}

export function routes({ health, metrics }: RouteSources): Routes {
  return {
    '/livez': () => livez(health()),
    '/readyz': () => readyz(health()),
    '/healthz': () => healthz(health()),
    '/metrics': async () => {
      const { contentType, text: body } = await metrics()
      return { status: 200, type: contentType, body }
    },
  }
}

/** That anything is answered at all says that the event loop turns. */
function livez({ live, problems }: HealthReport): Reply {
  return live ? text(200, 'ok') : text(503, problems.join('\n'))
}

function readyz({ ready, problems }: HealthReport): Reply {
  return json(ready ? 200 : 503, { ready, problems })
}

/** The detail; what is down outside makes nobody restart the daemon. */
function healthz(report: HealthReport): Reply {
  return json(report.live ? 200 : 503, report)
}
