/** The triggers for automations in Home Assistant, one row each. */
import type { EventType } from '../contract/events.ts'

export interface Trigger {
  /** The word with which users select the trigger in an automation. */
  readonly event: EventType
  /** Offered only if the guardian is on. */
  readonly when?: 'guard'
  /** One sentence for the documentation. */
  readonly doc: string
}

export const TRIGGERS: readonly Trigger[] = [
  { event: 'crashed', doc: 'The app has crashed.' },
  { event: 'updated', doc: 'The app has a new version.' },
  { event: 'command_failed', doc: 'A command that would change the app was refused or failed.' },
  {
    event: 'gave_up',
    when: 'guard',
    doc: 'The guardian has given up on the app. Exists only if the guardian is on.',
  },
]

/** Returns the key in the discovery message. Never change this key, because Home Assistant has stored it. */
export const triggerKey = ({ event }: Trigger): string => `trigger_${event}`
