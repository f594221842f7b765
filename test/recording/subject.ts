/** The one place here that knows the code under test: all else sees MQTT, and the emulated hub, from outside. */

import { run } from '../../src/app.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createTopics } from '../../src/contract/topics.ts'
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { startEmbeddedBroker } from '../../src/mqtt/embedded.ts'
import { createLog } from '../../src/observability/log.ts'
import { Mosquitto, mosquittoPath } from '../support/brokers.ts'
import type { SteppedClock } from './clock.ts'

export { until } from '../support/until.ts'
export { EmulatedHub }

export const BROKERS = mosquittoPath === undefined ? (['aedes'] as const) : (['mosquitto', 'aedes'] as const)
export type BrokerKind = 'mosquitto' | 'aedes'

export interface Broker extends AsyncDisposable {
  readonly url: string
}

export function startBroker(kind: BrokerKind): Promise<Broker> {
  // Without the delay that Mosquitto else puts into each answer.
  if (kind === 'mosquitto') return Mosquitto.start({ config: ['set_tcp_nodelay true'] })
  const { commandFilters } = createTopics('hub2mqtt')
  return startEmbeddedBroker({ host: '127.0.0.1', port: 0, commandFilters }, silentLog())
}

export interface Bridge {
  /** Changes the configuration and lets it be read again, as SIGHUP would. */
  reload(config: object): void
  /** Ends it as SIGTERM would. */
  stop(): Promise<void>
}

const FILE = 'recording.yaml'

/** The daemon in this process, from its configuration file on: JSON is YAML. */
export function startBridge(config: object, clock: SteppedClock): Bridge {
  let text = JSON.stringify(config)
  const load = () => loadConfig({ env: {}, file: FILE, readFile: () => text })
  let readAgain = () => {}
  const ending = new AbortController()
  const running = run({
    config: load().config,
    load,
    onReload: (reload) => {
      readAgain = reload
    },
    version: '0.0.0-recording',
    clock,
    random: () => 0,
    log: silentLog(),
    signal: ending.signal,
  })
  return {
    reload(changed) {
      text = JSON.stringify(changed)
      readAgain()
    },
    stop() {
      ending.abort()
      return running
    },
  }
}

/** Logging costs time and is no part of what subscribers see; RECORDING_LOG=1 shows it all the same. */
function silentLog() {
  if (process.env['RECORDING_LOG'] !== undefined) return createLog({ level: 'debug', format: 'json', secrets: [] })
  return createLog({ level: 'fatal', format: 'json', secrets: [], destination: { write: () => {} } })
}
