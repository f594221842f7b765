import * as v from 'valibot'
import { HubError } from '../../hub-error.ts'
import { type Caller, type Core, type Endpoints, endpoint, settingIn } from '../endpoint.ts'
import { HUB, type StoredNotification } from '../hub-store.ts'

/** The speech manager, which newer hubs do not have. */
export const SPEECH_OUTPUT = {
  say: endpoint('POST /say', 'homey.speech', 'Speaks a text.', {
    alias: '/',
    only: ['older', 'reference'],
    accepts: { text: v.string() },
    run: (core, { text }) => core.speak(text),
  }),
  getVoices: endpoint('GET /voice', 'homey.system', 'The voices of the hub.', {
    only: ['older'],
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

/** The notifications in the hub's timeline. The manager sends notification.create and notification.delete. */
export const NOTIFICATIONS = {
  getNotifications: endpoint('GET /notification', 'homey.notifications.readonly', 'All notifications by id.', {
    run: ({ store }) => Object.fromEntries(store.notifications().map((one) => [String(one.id), shown(one)])),
  }),
  createNotification: endpoint('POST /notification', 'homey.notifications', 'Adds a notification.', {
    accepts: { excerpt: v.pipe(v.string(), v.maxLength(4000)) },
    run({ store, sendEvent }, { excerpt }, { app = HUB }) {
      const made = shown(store.notify(app, excerpt))
      sendEvent(NOTIFICATIONS_URI, 'notification.create', made)
      return made
    },
  }),
  deleteNotification: endpoint('DELETE /notification/:id', 'homey.notifications', 'Removes a notification.', {
    run({ store, sendEvent }, { id }) {
      if (!store.forget(Number(id))) throw new HubError(404, 'not_found', 'Notification Not Found')
      sendEvent(NOTIFICATIONS_URI, 'notification.delete', { id })
    },
  }),
} as const satisfies Endpoints

/** The settings of the calling app; for a client with a key, the settings of the hub. */
export const SETTINGS = {
  getSettings: endpoint('GET /setting', 'homey.system.readonly', 'All settings by name.', {
    own: true,
    run: (core, _input, caller) => Object.fromEntries(ownSettings(core, caller)),
  }),
  getSetting: endpoint('GET /setting/:name', 'homey.system.readonly', 'The value of one setting.', {
    own: true,
    run: (core, { name }, caller) => settingIn(ownSettings(core, caller), name),
  }),
  setSetting: endpoint('PUT /setting/:name', 'homey.system', 'Sets one setting, or adds it.', {
    own: true,
    accepts: { value: v.unknown() },
    run: ({ apps, store }, { name, value }, { app }) =>
      app === undefined ? store.setSetting(HUB, name, value) : apps.setSetting(app, name, value),
  }),
  unsetSetting: endpoint('DELETE /setting/:name', 'homey.system', 'Removes one setting.', {
    own: true,
    run(core, { name }, caller) {
      settingIn(ownSettings(core, caller), name)
      return caller.app === undefined ? core.store.unsetSetting(HUB, name) : core.apps.unsetSetting(caller.app, name)
    },
  }),
} as const satisfies Endpoints

function ownSettings({ apps, store }: Core, { app }: Caller): ReadonlyMap<string, unknown> {
  return app === undefined ? store.settings(HUB) : apps.settings(app)
}
