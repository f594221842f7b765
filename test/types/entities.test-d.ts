/** Checked only by the compiler: rows that Home Assistant would reject must not compile. */
import { expectTypeOf } from 'vitest'
import type { Entity, EntityOf } from '../../src/home-assistant/entity.ts'
import { attributesOf, fieldOf } from '../../src/home-assistant/templates.ts'
import type { Trigger } from '../../src/home-assistant/triggers.ts'

const common = { key: 'x', name: 'X', doc: '' } as const
const problem = {
  platform: 'binary_sensor',
  deviceClass: 'problem',
  reads: 'app',
  on: 'ON',
  off: 'OFF',
} as const
const row = (entity: Entity) => entity
const onApp = (entity: EntityOf<'app'>) => entity

export const rows = [
  row({ ...common, device: 'app', platform: 'button', sends: 'restart' }),
  // @ts-expect-error a button has no state
  row({ ...common, device: 'app', platform: 'button', sends: 'restart', reads: 'app' }),
  // @ts-expect-error a switch sends something
  row({ ...common, device: 'app', platform: 'switch', reads: 'app', on: 'ON', off: 'OFF' }),
  // @ts-expect-error a switch has a state
  row({ ...common, device: 'app', platform: 'switch', sends: 'enabled', on: 'ON', off: 'OFF' }),
  // @ts-expect-error a switch defines its on and off values
  row({ ...common, device: 'app', platform: 'switch', reads: 'app', sends: 'enabled' }),
  // @ts-expect-error an update can be installed
  row({ ...common, device: 'app', platform: 'update', reads: 'appUpdate' }),
  // @ts-expect-error an event has types
  row({ ...common, device: 'app', platform: 'event', reads: 'appEvent' }),
  // @ts-expect-error a sensor sends nothing
  row({ ...common, device: 'app', platform: 'sensor', reads: 'app', shows: {}, sends: 'restart' }),
  row({
    ...common,
    device: 'app',
    platform: 'sensor',
    reads: 'app',
    // @ts-expect-error an enum has neither unit nor state class
    shows: { options: ['a'], stateClass: 'measurement' },
  }),
  // @ts-expect-error a number has limits
  row({ ...common, device: 'app', platform: 'number', reads: 'setting', sends: 'set-setting' }),
  // @ts-expect-error a notification is never read
  row({ ...common, device: 'hub', platform: 'notify', sends: 'speak', reads: 'hubState' }),
  onApp({ ...common, device: 'app', platform: 'sensor', reads: 'app', shows: {}, template: fieldOf('cpu_percent') }),
  // @ts-expect-error a template reads only fields of the topic
  onApp({ ...common, device: 'app', platform: 'sensor', reads: 'app', shows: {}, template: fieldOf('cpu_percentt') }),
  onApp({
    ...common,
    device: 'app',
    platform: 'sensor',
    reads: 'appUpdate',
    shows: {},
    // @ts-expect-error the field belongs to another topic
    template: fieldOf('cpu_percent'),
  }),
  // @ts-expect-error attributes must be fields of the topic
  row({ ...common, ...problem, device: 'app', attributes: attributesOf({ message: 'crash_messag' }) }),
  row({ ...common, ...problem, device: 'app', attributes: attributesOf({ message: 'crash_message' }) }),
  // @ts-expect-error a button sends an existing command
  row({ ...common, device: 'app', platform: 'button', sends: 'restrat' }),
  // @ts-expect-error the command is for apps
  row({ ...common, device: 'hub', platform: 'button', sends: 'restart' }),
  // @ts-expect-error an event has types of the contract
  row({ ...common, device: 'app', platform: 'event', reads: 'appEvent', types: ['crashd'] }),
  // @ts-expect-error an unknown topic cannot be read
  onApp({ ...common, device: 'app', platform: 'sensor', reads: 'appp', shows: {} }),
  // @ts-expect-error an app does not read a hub's topics
  onApp({ ...common, device: 'app', platform: 'sensor', reads: 'hubInfo', shows: {} }),
]

const trigger = (row: Trigger) => row

export const triggers = [
  trigger({ event: 'crashed', doc: '' }),
  // @ts-expect-error a trigger needs an event of the contract
  trigger({ event: 'crashd', doc: '' }),
]

expectTypeOf<EntityOf<'hub'>['device']>().toEqualTypeOf<'hub'>()
