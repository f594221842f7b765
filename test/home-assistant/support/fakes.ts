/** Inputs of discovery, without a hub or a broker. */

import type { PublishedSetting } from '../../../src/config/settings.ts'
import { createDiscoveryTopics, type Form } from '../../../src/contract/discovery.ts'
import { createTopics } from '../../../src/contract/topics.ts'
import { settingEntities } from '../../../src/home-assistant/app-entities.ts'
import { appDevice, bridgeDevice, type HubFacts, hubDevice } from '../../../src/home-assistant/device.ts'
import { ENTITIES } from '../../../src/home-assistant/entities.ts'
import { guardedForm, isOffered } from '../../../src/home-assistant/entity.ts'
import { messagesOf } from '../../../src/home-assistant/messages.ts'
import { TRIGGERS } from '../../../src/home-assistant/triggers.ts'
import { type AppPatch, patchApp } from '../../../src/hub/app.ts'
import type { OperationName } from '../../../src/hub/operations.ts'

export const FACTS: HubFacts = {
  name: 'home',
  id: 'abc123',
  firmware: '8.1.6',
  api: 'manager',
  url: 'http://hub.local/x',
}

export interface Wish {
  readonly app?: AppPatch & { readonly id?: string }
  readonly settings?: ReadonlyMap<string, PublishedSetting>
  readonly missing?: readonly OperationName[]
  /** Commands that the configuration denies; default: none. */
  readonly deny?: readonly string[]
  readonly facts?: HubFacts
  readonly severalHubs?: boolean
  readonly base?: string
  readonly publicUrl?: string
  /** Whether the guardian is on; default: `true`. */
  readonly guarded?: boolean
}

/** Returns every message for one bridge, one hub and one app. */
export function messages(form: Form, wish: Wish = {}): Map<string, string> {
  const { settings = new Map(), missing = [], deny = [], facts = FACTS, base = 'hub2mqtt' } = wish
  const { severalHubs = false, guarded = true, publicUrl = null } = wish
  const { id = 'com.athom.hue', ...patch } = wish.app ?? {}
  const app = patchApp(undefined, id, { name: 'Philips Hue', version: '6.1.2', author: 'Athom', ...patch })
  const hub = { permits: (name: OperationName) => (missing.includes(name) ? 'unsupported' : 'yes') } as const
  const policy = { allow: ['*'], deny, read_only: false, guarded }
  const offered = ENTITIES.filter((entity) => isOffered(entity, hub, policy)).map((entity) =>
    guarded ? guardedForm(entity) : entity,
  )
  const of = (device: string) => offered.filter((entity) => entity.device === device)
  const own = settingEntities(settings).filter((entity) => isOffered(entity, hub, policy))
  const triggers = TRIGGERS.filter(({ when }) => when === undefined || guarded)
  const bridgeId = facts.id
  const surroundings = { topics: createTopics(base), version: '1.2.3', bridgeId, severalHubs, publicUrl, triggers }
  const topics = createDiscoveryTopics('homeassistant')
  return new Map([
    ...messagesOf(bridgeDevice(of('bridge'), surroundings, facts.id), form, topics),
    ...messagesOf(hubDevice(of('hub'), facts, surroundings), form, topics),
    ...messagesOf(appDevice([...of('app'), ...own], facts, app, surroundings), form, topics),
  ])
}
