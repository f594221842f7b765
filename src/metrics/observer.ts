/** What the daemon tells whoever counts. Each call is cheap and none of them throws. */
import type { CommandEnd } from '../bridge/dispatcher.ts'
import type { AppEventPayload } from '../contract/events.ts'
import type { HubCall } from '../hub/client.ts'

export interface Observer {
  call(hub: string, call: HubCall): void
  event(hub: string, event: AppEventPayload): void
  command(end: CommandEnd): void
  reload(outcome: 'ok' | 'refused'): void
}

/** Nobody counts. */
export const noObserver: Observer = {
  call() {},
  event() {},
  command() {},
  reload() {},
}
