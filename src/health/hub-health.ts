/** The health of the hubs, as they tell of themselves. */

import type { Hub } from '../hub/hub.ts'
import { reasonOf } from '../hub/status.ts'
import type { Pulse } from './pulse.ts'
import type { HubHealth } from './report.ts'

interface Watched {
  readonly hub: Hub
  readonly pulse: Pulse
}

export function hubHealth(hubs: ReadonlyMap<string, Watched>): Map<string, HubHealth> {
  return new Map([...hubs].map(([name, watched]) => [name, healthOf(watched)]))
}

function healthOf({ hub, pulse }: Watched): HubHealth {
  const { online, realtime } = hub.status
  return {
    online,
    reason: reasonOf(hub.status),
    realtime,
    read: hub.apps.complete,
    task: pulse.stuck ? 'stuck' : 'alive',
  }
}
