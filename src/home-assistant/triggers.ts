/** The triggers for automations in Home Assistant, one row each. */
import type { EventType } from '../contract/events.ts'
import type { Payload } from '../contract/publications.ts'
import { fieldOf, type Template } from './templates.ts'

export interface Trigger {
  readonly device: 'app'
  /** This key is part of the discovery message, so never change it. */
  readonly key: `trigger_${EventType}`
  /** The word with which users select the trigger in an automation. */
  readonly event: EventType
  /** Offered only if the guardian is on. */
  readonly when?: 'guard'
  readonly reads: 'appEvent'
  readonly template: Template<keyof Payload<'appEvent'> & string>
  /** One sentence for the documentation. */
  readonly doc: string
}

const EVENT = { device: 'app', reads: 'appEvent', template: fieldOf('event_type') } as const

export const TRIGGERS: readonly Trigger[] = [
  { ...EVENT, key: 'trigger_crashed', event: 'crashed', doc: 'The app has crashed.' },
  { ...EVENT, key: 'trigger_updated', event: 'updated', doc: 'The app has a new version.' },
  {
    ...EVENT,
    key: 'trigger_command_failed',
    event: 'command_failed',
    doc: 'A command that would change the app was refused or failed.',
  },
  {
    ...EVENT,
    key: 'trigger_gave_up',
    event: 'gave_up',
    when: 'guard',
    doc: 'The guardian has given up on the app. Exists only if the guardian is on.',
  },
]
