import * as v from 'valibot'
import { HubError } from '../../hub-error.ts'
import { type AppRecord, type Flavour, GENERATIONS } from '../../records.ts'
import { type Core, type Endpoints, endpoint, invalid, missing, settingIn } from '../endpoint.ts'

export const APPS = {
  getApps: endpoint('GET /app', 'homey.app.readonly', {
    run: ({ apps }) => Object.fromEntries(apps.records),
  }).doc('All apps by id.'),
  getApp: endpoint('GET /app/:id', 'homey.app.readonly', { run: (core, { id }) => recordOf(core, id) }).doc('One app.'),
  updateApp: endpoint('PUT /app/:id', 'homey.app', {
    wholeBody: 'app',
    accepts: { app: v.object({ autoupdate: v.optional(v.boolean()) }) },
    async run(core, { id, app }) {
      recordOf(core, id)
      if (app.autoupdate !== undefined) await core.apps.change(id, { autoupdate: app.autoupdate })
      return core.apps.records.get(id)
    },
  }).doc('Turns automatic updates on or off. Over HTTP, the app is the body; other fields are ignored.'),
  uninstallApp: endpoint('DELETE /app/:id', 'homey.app', {
    accepts: {
      /** Whether to delete the settings as well. Only older hubs and the flavour `reference` read this parameter. */
      purgeSettings: v.optional(v.union([v.boolean(), v.string()])),
    },
    run(core, { id, purgeSettings }) {
      recordOf(core, id)
      const always = GENERATIONS[core.flavour].isNewer
      return core.apps.uninstall(id, { purgeSettings: always || String(purgeSettings) === 'true' })
    },
  }).doc('Uninstalls the app and removes its settings; older hubs keep the settings by default.'),
  getAppStd: endpoint('POST /app/:id/crashlog', 'homey.app.readonly', {
    accepts: {
      /** A message for the developer. Newer hubs require the field, but it may be empty. */
      message: v.optional(v.string()),
    },
    run(core, { id, message }) {
      recordOf(core, id)
      if (message === undefined && GENERATIONS[core.flavour].isNewer) throw missing('message')
      return core.apps.output(id)
    },
  }).doc(
    'The latest output of the app if it is a process; otherwise `null`, as on a hub that sends the output to the developer.',
  ),
  getAppSettings: endpoint('GET /app/:id/setting', 'homey.app.control', {
    run: (core, { id }) => Object.fromEntries(core.apps.settings(recordOf(core, id).id)),
  }).doc('The settings of the app, by name.'),
  getAppSetting: endpoint('GET /app/:id/setting/:name', 'homey.app.control', {
    run: (core, { id, name }) => settingIn(core.apps.settings(recordOf(core, id).id), name),
  }).doc('The value of one setting.'),
  setAppSetting: endpoint('PUT /app/:id/setting/:name', 'homey.app.control', {
    accepts: { value: v.unknown() },
    run: (core, { id, name, value }) => core.apps.setSetting(recordOf(core, id).id, name, value),
  }).doc('Sets one setting, or adds it.'),
  unsetAppSetting: endpoint('DELETE /app/:id/setting/:name', 'homey.app.control', {
    run(core, { id, name }) {
      settingIn(core.apps.settings(recordOf(core, id).id), name)
      return core.apps.unsetSetting(id, name)
    },
  }).doc('Removes one setting.'),
  restartApp: endpoint('POST /app/:id/restart', 'homey.app', {
    run: (core, { id }) => core.apps.restart(recordOf(core, id).id),
  }).doc('Restarts the app; a disabled app stays stopped.'),
  garbageCollectApp: endpoint('POST /app/:id/gc', 'homey.app', {
    only: ['older', 'reference'],
    run: (core, { id }) => core.apps.collectGarbage(recordOf(core, id).id),
  }).doc('Makes the app free memory that it does not need.'),
  enableApp: endpoint('PUT /app/:id/enable', 'homey.app', {
    run: (core, { id }) => core.apps.enable(recordOf(core, id).id),
  }).doc('Enables the app and starts it.'),
  disableApp: endpoint('PUT /app/:id/disable', 'homey.app', {
    run: (core, { id }) => core.apps.disable(recordOf(core, id).id),
  }).doc('Stops the app and disables it.'),
  getAppLocales: endpoint('GET /app/:id/locale', 'homey.app.readonly', {
    run: (core, { id }) => core.apps.locales(recordOf(core, id).id),
  }).doc('The texts of the app, by language.'),
  installFromAppStore: endpoint('POST /store', 'homey.app', {
    accepts: {
      id: v.string(),
      channel: v.nullish(v.string()),
      version: v.nullish(v.string()),
      waitForInstall: v.nullish(v.boolean()),
    },
    run({ apps, flavour }, { id, channel, version }) {
      const wanted = { id, channel: channelOf(channel, flavour) }
      return apps.install(GENERATIONS[flavour].isNewer ? { ...wanted, version: version ?? undefined } : wanted)
    },
  }).doc('Installs an app from the store, or updates it.'),
  getAppUsage: endpoint('GET /app/:id/usage', 'homey.app.readonly', {
    only: ['reference', 'newer', 'self-hosted'],
    run: (core, { id }) => recordOf(core, id).usage,
  }).doc('The current usage of the app.'),
} as const satisfies Endpoints

/** Returns the record of an app. Restores its `id`, which a test may have changed in the record. */
function recordOf({ apps }: Core, id: string): AppRecord {
  const record = apps.records.get(id)
  if (record === undefined) throw new HubError(404, 'not_found', 'App Not Found')
  return record.id === id ? record : { ...record, id }
}

function channelOf(value: string | null | undefined, flavour: Flavour): string | undefined {
  if (value === undefined || value === null) return undefined
  const channel = GENERATIONS[flavour].channels.find((name) => name === value)
  if (channel === undefined) throw invalid('channel')
  return channel
}
