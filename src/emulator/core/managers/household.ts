import * as v from 'valibot'
import { HubError } from '../../hub-error.ts'
import { type Caller, type Core, type Endpoints, endpoint, settingIn } from '../endpoint.ts'
import { HUB, type StoredNotification } from '../hub-store.ts'

/** The speech manager, which newer hubs do not have. */
export const SPEECH_OUTPUT = {
  say: endpoint('POST /say', 'homey.speech', {
    alias: '/',
    only: ['older', 'reference'],
    accepts: { text: v.string() },
    run: (core, { text }) => core.speak(text),
  }).doc('Speaks a text.'),
  getVoices: endpoint('GET /voice', 'homey.system', {
    only: ['older'],
    run: () => ({ amber: { id: 'amber', name: 'Amber', language: 'en' } }),
  }).doc('The voices of the hub.'),
} as const satisfies Endpoints

export const NOTIFICATIONS_URI = 'homey:manager:notifications'

const shown = ({ id, owner, text, at }: StoredNotification) => ({
  id: String(id),
  ownerUri: owner === HUB ? NOTIFICATIONS_URI : `homey:app:${owner}`,
  excerpt: text,
  dateCreated: new Date(at).toISOString(),
})

/** The notifications in the hub's timeline. The manager sends notification.create and notification.delete. */
export const NOTIFICATIONS = {
  getNotifications: endpoint('GET /notification', 'homey.notifications.readonly', {
    run: ({ store }) => Object.fromEntries(store.notifications().map((one) => [String(one.id), shown(one)])),
  }).doc('All notifications by id.'),
  createNotification: endpoint('POST /notification', 'homey.notifications', {
    accepts: { excerpt: v.pipe(v.string(), v.maxLength(4000)) },
    run({ store, sendEvent }, { excerpt }, { app = HUB }) {
      const made = shown(store.notify(app, excerpt))
      sendEvent(NOTIFICATIONS_URI, 'notification.create', made)
      return made
    },
  }).doc('Adds a notification.'),
  deleteNotification: endpoint('DELETE /notification/:id', 'homey.notifications', {
    run({ store, sendEvent }, { id }) {
      if (!store.forget(Number(id))) throw new HubError(404, 'not_found', 'Notification Not Found')
      sendEvent(NOTIFICATIONS_URI, 'notification.delete', { id })
    },
  }).doc('Removes a notification.'),
} as const satisfies Endpoints

/** The settings of the calling app; for a client with a key, the settings of the hub. */
export const SETTINGS = {
  getSettings: endpoint('GET /setting', 'homey.system.readonly', {
    own: true,
    run: (core, _input, caller) => Object.fromEntries(ownSettings(core, caller)),
  }).doc('All settings by name.'),
  getSetting: endpoint('GET /setting/:name', 'homey.system.readonly', {
    own: true,
    run: (core, { name }, caller) => settingIn(ownSettings(core, caller), name),
  }).doc('The value of one setting.'),
  setSetting: endpoint('PUT /setting/:name', 'homey.system', {
    own: true,
    accepts: { value: v.unknown() },
    run: ({ apps, store }, { name, value }, { app }) =>
      app === undefined ? store.setSetting(HUB, name, value) : apps.setSetting(app, name, value),
  }).doc('Sets one setting, or adds it.'),
  unsetSetting: endpoint('DELETE /setting/:name', 'homey.system', {
    own: true,
    run(core, { name }, caller) {
      settingIn(ownSettings(core, caller), name)
      return caller.app === undefined ? core.store.unsetSetting(HUB, name) : core.apps.unsetSetting(caller.app, name)
    },
  }).doc('Removes one setting.'),
} as const satisfies Endpoints

function ownSettings({ apps, store }: Core, { app }: Caller): ReadonlyMap<string, unknown> {
  return app === undefined ? store.settings(HUB) : apps.settings(app)
}
