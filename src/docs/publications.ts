/** Every topic on which the bridge speaks by itself: what it holds and what it is for. Addresses come from the bridge. */
import type * as v from 'valibot'
import type { Command } from '../contract/commands.ts'
import * as payloads from '../contract/schemas.ts'
import { createTopics } from '../contract/topics.ts'

/** Stand for what differs; the marks around them pass through a topic level unchanged. */
const at = { base: '_base_', hub: '_hub_', app: '_app_', name: '_name_' } as const
export type Placeholder = keyof typeof at

export const PLACEHOLDERS: Readonly<Record<Placeholder, string>> = {
  base: 'The option `mqtt.base_topic`.',
  hub: "The hub's name in the configuration.",
  app: "The app's id; bytes other than `A-Z a-z 0-9 . _ -` are written `%XX`.",
  name: 'The name of a setting, written the same way.',
}

const topics = createTopics(at.base)

/** A topic that was made with the placeholders, each shown in the form that its reader knows. */
export function address(topic: string, show: (name: string) => string): string {
  return topic.replace(/(?<=^|\/)_([a-z]+)_(?=\/|$)/g, (_, name: string) => show(name))
}

export interface TopicDoc {
  readonly topic: string
  readonly retained: boolean
  readonly contentType: 'application/json' | 'text/plain'
  /** Name of the payload's schema in the AsyncAPI document. */
  readonly payload: string
  readonly schema: v.GenericSchema
  readonly doc: string
}

const json = { contentType: 'application/json' } as const
const state = { contentType: 'text/plain', payload: 'availability', schema: payloads.AVAILABILITY } as const
const event = { ...json, retained: false, payload: 'event', schema: payloads.EVENT } as const

export const TOPICS: Readonly<Record<string, TopicDoc>> = {
  bridgeState: {
    ...state,
    topic: topics.bridgeState,
    retained: true,
    doc: '`online` while the bridge is connected; the will says `offline`.',
  },
  bridgeInfo: {
    ...json,
    topic: topics.bridgeInfo,
    retained: true,
    payload: 'bridgeInfo',
    schema: payloads.BRIDGE_INFO,
    doc: 'Version of this interface and of the bridge, and its hubs.',
  },
  bridgeHealth: {
    ...json,
    topic: topics.bridgeHealth,
    retained: true,
    payload: 'bridgeHealth',
    schema: payloads.HEALTH,
    doc: 'Whether all is well, and what is not.',
  },
  bridgeLogLevel: {
    topic: topics.bridgeLogLevel,
    retained: true,
    contentType: 'text/plain',
    payload: 'logLevel',
    schema: payloads.LOG_LEVEL,
    doc: 'How much is logged; for Home Assistant.',
  },
  hubState: {
    ...state,
    topic: topics.hubState(at.hub),
    retained: true,
    doc: '`online` while the hub answers with a valid key, else `offline`.',
  },
  hubInfo: {
    ...json,
    topic: topics.hubInfo(at.hub),
    retained: true,
    payload: 'hubInfo',
    schema: payloads.HUB_INFO,
    doc: 'What is known of the hub, what the key permits, and why the hub is offline.',
  },
  hubSummary: {
    ...json,
    topic: topics.hubSummary(at.hub),
    retained: true,
    payload: 'hubSummary',
    schema: payloads.HUB_SUMMARY,
    doc: 'Counts over all apps; for Home Assistant.',
  },
  app: {
    ...json,
    topic: topics.app(at.hub, at.app),
    retained: true,
    payload: 'app',
    schema: payloads.APP,
    doc: 'The app; every key is always there, unknown is `null`. Cleared when the app is gone.',
  },
  setting: {
    ...json,
    topic: topics.setting(at.hub, at.app, at.name),
    retained: true,
    payload: 'setting',
    schema: payloads.ANYTHING,
    doc: 'The JSON value of a setting that `settings.publish` names; no other is published.',
  },
  appUpdate: {
    ...json,
    topic: topics.appUpdate(at.hub, at.app),
    retained: true,
    payload: 'appUpdate',
    schema: payloads.APP_UPDATE,
    doc: "The app's version and the newest one; for Home Assistant.",
  },
  hubEvent: { ...event, topic: topics.hubEvent(at.hub), doc: 'What happened to any app of the hub.' },
  appEvent: { ...event, topic: topics.appEvent(at.hub, at.app), doc: 'What happened to the app.' },
}

/** Where a command is sent, and where its answer goes unless the asker names a topic. */
export function commandTopics({ target, name, argument }: Command): { topic: string; result: string } {
  const topic =
    target === 'bridge'
      ? topics.bridgeCommand(name)
      : target === 'hub'
        ? topics.hubCommand(at.hub, name)
        : topics.appCommand(at.hub, at.app, name, argument === undefined ? undefined : at.name)
  return { topic, result: topics.parseCommand(topic)?.result ?? '' }
}
