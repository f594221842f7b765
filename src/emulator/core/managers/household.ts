import * as v from 'valibot'
import { HubError } from '../../hub-error.ts'
import { type Caller, type Core, type Endpoints, endpoint, settingIn } from '../endpoint.ts'
import { HUB, type StoredNotification } from '../hub-store.ts'

/** The speech manager, which newer hubs do not have. */
export const SPEECH_OUTPUT = {
  say: endpoint({
    doc: 'Speaks a text.',
    request: 'POST /say',
    alias: '/',
    needs: 'homey.speech',
    only: ['older', 'reference'],
    accepts: { text: v.string() },
    run: (core, { text }) => core.speak(text),
  }),
  getVoices: endpoint({
    doc: 'The voices of the hub.',
    request: 'GET /voice',
    needs: 'homey.system',
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
  getNotifications: endpoint({
    doc: 'All notifications by id.',
    request: 'GET /notification',
    needs: 'homey.notifications.readonly',
    run: ({ store }) => Object.fromEntries(store.notifications().map((one) => [String(one.id), shown(one)])),
  }),
  createNotification: endpoint({
    doc: 'Adds a notification.',
    request: 'POST /notification',
    needs: 'homey.notifications',
    accepts: { excerpt: v.pipe(v.string(), v.maxLength(4000)) },
    run({ store, sendEvent }, { excerpt }, { app = HUB }) {
      const made = shown(store.notify(app, excerpt))
      sendEvent(NOTIFICATIONS_URI, 'notification.create', made)
      return made
    },
  }),
  deleteNotification: endpoint({
    doc: 'Removes a notification.',
    request: 'DELETE /notification/:id',
    needs: 'homey.notifications',
    run({ store, sendEvent }, { id }) {
      if (!store.forget(Number(id))) throw new HubError(404, 'not_found', 'Notification Not Found')
      sendEvent(NOTIFICATIONS_URI, 'notification.delete', { id })
    },
  }),
} as const satisfies Endpoints

/** The settings of the calling app; for a client with a key, the settings of the hub. */
export const SETTINGS = {
  getSettings: endpoint({
    doc: 'All settings by name.',
    request: 'GET /setting',
    needs: 'homey.system.readonly',
    own: true,
    run: (core, _input, caller) => Object.fromEntries(ownSettings(core, caller)),
  }),
  getSetting: endpoint({
    doc: 'The value of one setting.',
    request: 'GET /setting/:name',
    needs: 'homey.system.readonly',
    own: true,
    run: (core, { name }, caller) => settingIn(ownSettings(core, caller), name),
  }),
  setSetting: endpoint({
    doc: 'Sets one setting, or adds it.',
    request: 'PUT /setting/:name',
    needs: 'homey.system',
    own: true,
    accepts: { value: v.unknown() },
    run: ({ apps, store }, { name, value }, { app }) =>
      app === undefined ? store.setSetting(HUB, name, value) : apps.setSetting(app, name, value),
  }),
  unsetSetting: endpoint({
    doc: 'Removes one setting.',
    request: 'DELETE /setting/:name',
    needs: 'homey.system',
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
