import * as v from 'valibot'
import { HubError } from '../../hub-error.ts'
import { type AppRecord, type Flavour, GENERATIONS } from '../../records.ts'
import { type Core, type Endpoints, endpoint, invalid, missing, settingIn } from '../endpoint.ts'

export const APPS = {
  getApps: endpoint({
    doc: 'All apps by id.',
    request: 'GET /app',
    needs: 'homey.app.readonly',
    run: ({ apps }) => Object.fromEntries(apps.records),
  }),
  getApp: endpoint({
    doc: 'One app.',
    request: 'GET /app/:id',
    needs: 'homey.app.readonly',
    run: (core, { id }) => recordOf(core, id),
  }),
  updateApp: endpoint({
    doc: 'Turns automatic updates on or off. Over HTTP, the app is the body; other fields are ignored.',
    request: 'PUT /app/:id',
    needs: 'homey.app',
    wholeBody: 'app',
    accepts: {
      app: v.object({ autoupdate: v.optional(v.boolean()) }),
    },
    async run(core, { id, app }) {
      recordOf(core, id)
      if (app.autoupdate !== undefined) await core.apps.change(id, { autoupdate: app.autoupdate })
      return core.apps.records.get(id)
    },
  }),
  uninstallApp: endpoint({
    doc: 'Uninstalls the app and removes its settings; older hubs keep the settings by default.',
    request: 'DELETE /app/:id',
    needs: 'homey.app',
    accepts: {
      /** Whether to delete the settings as well. Only older hubs and the flavour `reference` read this parameter. */
      purgeSettings: v.optional(v.union([v.boolean(), v.string()])),
    },
    run(core, { id, purgeSettings }) {
      recordOf(core, id)
      const always = GENERATIONS[core.flavour].isNewer
      return core.apps.uninstall(id, { purgeSettings: always || String(purgeSettings) === 'true' })
    },
  }),
  getAppStd: endpoint({
    doc: 'The latest output of the app if it is a process; otherwise `null`, as on a hub that sends the output to the developer.',
    request: 'POST /app/:id/crashlog',
    needs: 'homey.app.readonly',
    accepts: {
      /** A message for the developer. Newer hubs require the field, but it may be empty. */
      message: v.optional(v.string()),
    },
    run(core, { id, message }) {
      recordOf(core, id)
      if (message === undefined && GENERATIONS[core.flavour].isNewer) throw missing('message')
      return core.apps.output(id)
    },
  }),
  getAppSettings: endpoint({
    doc: 'The settings of the app, by name.',
    request: 'GET /app/:id/setting',
    needs: 'homey.app.control',
    run: (core, { id }) => Object.fromEntries(core.apps.settings(recordOf(core, id).id)),
  }),
  getAppSetting: endpoint({
    doc: 'The value of one setting.',
    request: 'GET /app/:id/setting/:name',
    needs: 'homey.app.control',
    run: (core, { id, name }) => settingIn(core.apps.settings(recordOf(core, id).id), name),
  }),
  setAppSetting: endpoint({
    doc: 'Sets one setting, or adds it.',
    request: 'PUT /app/:id/setting/:name',
    needs: 'homey.app.control',
    accepts: { value: v.unknown() },
    run(core, { id, name, value }) {
      recordOf(core, id)
      return core.apps.setSetting(id, name, value)
    },
  }),
  unsetAppSetting: endpoint({
    doc: 'Removes one setting.',
    request: 'DELETE /app/:id/setting/:name',
    needs: 'homey.app.control',
    run(core, { id, name }) {
      settingIn(core.apps.settings(recordOf(core, id).id), name)
      return core.apps.unsetSetting(id, name)
    },
  }),
  restartApp: endpoint({
    doc: 'Restarts the app; a disabled app stays stopped.',
    request: 'POST /app/:id/restart',
    needs: 'homey.app',
    run: (core, { id }) => core.apps.restart(recordOf(core, id).id),
  }),
  garbageCollectApp: endpoint({
    doc: 'Makes the app free memory that it does not need.',
    request: 'POST /app/:id/gc',
    needs: 'homey.app',
    only: ['older', 'reference'],
    run: (core, { id }) => core.apps.collectGarbage(recordOf(core, id).id),
  }),
  enableApp: endpoint({
    doc: 'Enables the app and starts it.',
    request: 'PUT /app/:id/enable',
    needs: 'homey.app',
    run: (core, { id }) => core.apps.enable(recordOf(core, id).id),
  }),
  disableApp: endpoint({
    doc: 'Stops the app and disables it.',
    request: 'PUT /app/:id/disable',
    needs: 'homey.app',
    run: (core, { id }) => core.apps.disable(recordOf(core, id).id),
  }),
  getAppLocales: endpoint({
    doc: 'The texts of the app, by language.',
    request: 'GET /app/:id/locale',
    needs: 'homey.app.readonly',
    run: (core, { id }) => core.apps.locales(recordOf(core, id).id),
  }),
  installFromAppStore: endpoint({
    doc: 'Installs an app from the store, or updates it.',
    request: 'POST /store',
    needs: 'homey.app',
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
  }),
  getAppUsage: endpoint({
    doc: 'The current usage of the app.',
    request: 'GET /app/:id/usage',
    needs: 'homey.app.readonly',
    only: ['reference', 'newer', 'self-hosted'],
    run: (core, { id }) => recordOf(core, id).usage,
  }),
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
