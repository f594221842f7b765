/** Converts a row of the entity table to the form that Home Assistant reads. */
import type { Json } from '../base/json.ts'
import { uniqueId } from '../contract/discovery.ts'
import type { Payload } from '../contract/publications.ts'
import type { Topics } from '../contract/topics.ts'
import type { Entity, Measure, Platform } from './entity.ts'
import { fieldOf } from './templates.ts'
import type { Trigger } from './triggers.ts'

/** Home Assistant rejects numbers with smaller steps, and its default step of 1 does not allow decimals. */
const MIN_STEP = 0.001

/** A part of a device, which is an entity or a trigger for automations. Keys that are `undefined` are not sent. */
export interface Component {
  readonly platform: Platform | 'device_automation'
  /** Set only for entities. */
  readonly unique_id?: string
  readonly [key: string]: Json | undefined
}

export interface Software {
  readonly title: string | undefined
  readonly picture: string | undefined
  readonly releaseUrl: string | undefined
}

/** The parts of a component that depend on its device, not on its row. */
export interface Place {
  readonly objectId: string
  readonly topics: Topics
  /** Parameters of the topics that the entities read. */
  readonly parameters: Readonly<Record<string, string>>
  readonly command: (name: string, setting?: string) => string
  /** Set only for an app. */
  readonly software?: Software | undefined
}

export function componentOf(entity: Entity, place: Place): Component {
  const { platform, key, name, category, enabled, icon } = entity
  return {
    platform,
    unique_id: uniqueId(place.objectId, key),
    name,
    entity_category: category,
    enabled_by_default: enabled,
    icon,
    entity_picture: name === null || platform === 'update' ? place.software?.picture : undefined,
    // Home Assistant does not pass a device's `qos` on to its components.
    qos: 1,
    state_topic: stateTopic(entity, place),
    value_template: 'template' in entity ? entity.template?.jinja : undefined,
    command_topic: 'sends' in entity ? place.command(entity.sends, entity.setting) : undefined,
    command_template: 'sendsAs' in entity ? entity.sendsAs : undefined,
    ...ownKeys(entity, place),
  }
}

function stateTopic(entity: Entity, { topics, parameters }: Place): string | undefined {
  if (!('reads' in entity) || entity.reads === undefined) return undefined
  const { reads, setting: name } = entity
  return topics.fill(reads, name === undefined ? parameters : { ...parameters, name })
}

/** Created once, because each app has several triggers. */
const EVENT_TYPE = fieldOf<keyof Payload<'appEvent'> & string>('event_type').jinja

/** Returns the component of a trigger, which Home Assistant identifies by its device, type and subtype. */
export function triggerOf({ event }: Trigger, topic: string): Component {
  return {
    platform: 'device_automation',
    automation_type: 'trigger',
    type: event,
    subtype: 'app',
    topic,
    value_template: EVENT_TYPE,
    payload: event,
    qos: 1,
  }
}

function ownKeys(entity: Entity, place: Place): Readonly<Record<string, Json | undefined>> {
  switch (entity.platform) {
    case 'sensor': {
      const { options, stateClass, unit, deviceClass, decimals }: Measure = entity.shows ?? {}
      return {
        state_class: stateClass,
        unit_of_measurement: unit,
        device_class: options === undefined ? deviceClass : 'enum',
        suggested_display_precision: decimals,
        options: options && [...options],
      }
    }
    case 'binary_sensor':
      return {
        device_class: entity.deviceClass,
        payload_on: entity.on,
        payload_off: entity.off,
        json_attributes_topic: entity.attributes === undefined ? undefined : stateTopic(entity, place),
        json_attributes_template: entity.attributes?.jinja,
      }
    case 'switch':
      return { payload_on: entity.on, payload_off: entity.off }
    case 'button':
      return { payload_press: entity.press ?? 'PRESS' }
    case 'update':
      // Send the title here too. Otherwise, a changed discovery message would reset it until the next state.
      return { payload_install: '{}', title: place.software?.title, release_url: place.software?.releaseUrl }
    case 'event':
      return { event_types: [...entity.types] }
    case 'select':
      return { options: [...entity.options] }
    case 'number':
      return { min: entity.min, max: entity.max, step: Math.max(MIN_STEP, entity.step ?? MIN_STEP), mode: 'box' }
    case 'text':
      return { min: 0, max: 255, mode: entity.mode }
    case 'notify':
      return {}
  }
}
