/** What all apps of one hub share. */
import type { Clock } from '../../base/clock.ts'
import type { AppsHost } from '../core/hub-apps.ts'
import type { SqliteState, StoredApp } from '../data/state.ts'
import type { AppRecord } from '../records.ts'
import type { Limits, Watch } from './watch.ts'

export interface World {
  readonly clock: Clock
  readonly state: SqliteState
  readonly host: AppsHost
  readonly limits: Limits
  readonly watch: Watch
  /** The version that the store has for an app, where it is a newer one. */
  readonly offered: (app: StoredApp) => string | undefined
  /** The hub ends or reboots: nothing is started. */
  readonly isDown: () => boolean
  /** A line that an app has written, or that the hub says of it. */
  readonly onLine: ((id: string, line: string) => void) | undefined
  /** The record has changed. */
  readonly show: (record: AppRecord) => void
}
