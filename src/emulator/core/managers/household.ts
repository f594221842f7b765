/** The managers that people in the house notice: speech, notifications and settings. */
import * as v from 'valibot'
import { HubError } from '../../hub-error.ts'
import { type Caller, type Core, type Endpoints, endpoint, NONE } from '../endpoint.ts'
import { HUB, type StoredNotification } from '../hub-store.ts'

/** What the hub says aloud. Newer hubs have no such manager. */
export const SPEECH_OUTPUT = {
  say: endpoint({
    doc: 'Says a text aloud.',
    method: 'POST',
    path: '/say',
    alias: '/',
    needs: 'homey.speech',
    only: ['older', 'reference'],
    input: v.object({ text: v.string() }),
    run: (core, { text }) => core.speak(text),
  }),
  getVoices: endpoint({
    doc: 'The voices that the hub has.',
    method: 'GET',
    path: '/voice',
    needs: 'homey.system',
    only: ['older'],
    input: NONE,
    run: () => ({ amber: { id: 'amber', name: 'Amber', language: 'en' } }),
  }),
} as const satisfies Endpoints

export const NOTIFICATIONS_URI = 'homey:manager:notifications'

const shown = ({ id, owner, text, at }: StoredNotification) => ({
  id: String(id),
  ownerUri: owner === HUB ? NOTIFICATIONS_URI : `homey:app:${owner}`,
  excerpt: text,
  dateCreated: new Date(at).toISOString(),
})

/** The hub's timeline. Its events are notification.create and notification.delete. */
export const NOTIFICATIONS = {
  getNotifications: endpoint({
    doc: 'All notifications by id.',
    method: 'GET',
    path: '/notification',
    needs: 'homey.notifications.readonly',
    input: NONE,
    run: ({ store }) => Object.fromEntries(store.notifications().map((one) => [String(one.id), shown(one)])),
  }),
  createNotification: endpoint({
    doc: 'Adds a notification.',
    method: 'POST',
    path: '/notification',
    needs: 'homey.notifications',
    input: v.object({ excerpt: v.pipe(v.string(), v.maxLength(4000)) }),
    run({ store, tell }, { excerpt }, { app = HUB }) {
      const made = shown(store.notify(app, excerpt))
      tell(NOTIFICATIONS_URI, 'notification.create', made)
      return made
    },
  }),
  deleteNotification: endpoint({
    doc: 'Removes a notification.',
    method: 'DELETE',
    path: '/notification/:id',
    needs: 'homey.notifications',
    input: v.object({ id: v.string() }),
    run({ store, tell }, { id }) {
      if (!store.forget(Number(id))) throw new HubError(404, 'not_found', 'Notification Not Found')
      tell(NOTIFICATIONS_URI, 'notification.delete', { id })
    },
  }),
} as const satisfies Endpoints

const NAME = { name: v.string() }

/** The caller's own settings: those of the app that asks, or of the hub for a client with a key. */
export const SETTINGS = {
  getSettings: endpoint({
    doc: 'All of them by name.',
    method: 'GET',
    path: '/setting',
    needs: 'homey.system.readonly',
    own: true,
    input: NONE,
    run: (core, _input, caller) => Object.fromEntries(ownSettings(core, caller)),
  }),
  getSetting: endpoint({
    doc: 'The value of one.',
    method: 'GET',
    path: '/setting/:name',
    needs: 'homey.system.readonly',
    own: true,
    input: v.object(NAME),
    run: (core, { name }, caller) => knownSetting(core, caller, name).get(name),
  }),
  setSetting: endpoint({
    doc: 'Sets one.',
    method: 'PUT',
    path: '/setting/:name',
    needs: 'homey.system',
    own: true,
    input: v.object({ ...NAME, value: v.unknown() }),
    run: ({ apps, store }, { name, value }, { app }) =>
      app === undefined ? store.setSetting(HUB, name, value) : apps.setSetting(app, name, value),
  }),
  unsetSetting: endpoint({
    doc: 'Removes one.',
    method: 'DELETE',
    path: '/setting/:name',
    needs: 'homey.system',
    own: true,
    input: v.object(NAME),
    run(core, { name }, caller) {
      knownSetting(core, caller, name)
      return caller.app === undefined ? core.store.unsetSetting(HUB, name) : core.apps.unsetSetting(caller.app, name)
    },
  }),
} as const satisfies Endpoints

function ownSettings({ apps, store }: Core, { app }: Caller): ReadonlyMap<string, unknown> {
  return app === undefined ? store.settings(HUB) : apps.settings(app)
}

function knownSetting(core: Core, caller: Caller, name: string): ReadonlyMap<string, unknown> {
  const all = ownSettings(core, caller)
  if (!all.has(name)) throw new HubError(404, 'not_found', 'Setting Not Found')
  return all
}
