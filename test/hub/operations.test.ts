import { describe, expect, onTestFinished, test } from 'vitest'
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { OPERATIONS, type OperationName, type Parameters } from '../../src/hub/operations.ts'
import { clientOf } from './support.ts'

interface Case<N extends OperationName> {
  readonly parameters: Parameters<N>
  /** The method and the path, as in the documentation of the hub. */
  readonly request: string
  readonly body?: unknown
  /** The required permission; if there is none, any key may send the request. */
  readonly scope?: string
  /** Set if only older hubs have the operation. */
  readonly older?: true
}

const APP = 'com.athom.hue'
const NEW_APP = 'com.example.new'
const apps = '/api/manager/apps'

const CASES: { readonly [N in OperationName]: Case<N> } = {
  getApps: { parameters: {}, request: `GET ${apps}/app`, scope: 'hub.app.readonly' },
  getApp: { parameters: { id: APP }, request: `GET ${apps}/app/${APP}`, scope: 'hub.app.readonly' },
  getAppRecord: { parameters: { id: APP }, request: `GET ${apps}/app/${APP}`, scope: 'hub.app.readonly' },
  updateApp: {
    parameters: { id: APP, update: { autoupdate: false } },
    request: `PUT ${apps}/app/${APP}`,
    body: { autoupdate: false },
    scope: 'hub.app',
  },
  uninstallApp: {
    parameters: { id: APP, purgeSettings: true },
    request: `DELETE ${apps}/app/${APP}?purgeSettings=true`,
    scope: 'hub.app',
  },
  getAppStd: {
    parameters: { id: APP },
    request: `POST ${apps}/app/${APP}/crashlog`,
    body: { message: '' },
    scope: 'hub.app.readonly',
  },
  getAppSettings: { parameters: { id: APP }, request: `GET ${apps}/app/${APP}/setting`, scope: 'hub.app.control' },
  getAppSetting: {
    parameters: { id: APP, name: 'transition' },
    request: `GET ${apps}/app/${APP}/setting/transition`,
    scope: 'hub.app.control',
  },
  setAppSetting: {
    parameters: { id: APP, name: 'a/b ü', value: [1, null] },
    request: `PUT ${apps}/app/${APP}/setting/a%2Fb%20%C3%BC`,
    body: { value: [1, null] },
    scope: 'hub.app.control',
  },
  unsetAppSetting: {
    parameters: { id: APP, name: 'transition' },
    request: `DELETE ${apps}/app/${APP}/setting/transition`,
    scope: 'hub.app.control',
  },
  restartApp: { parameters: { id: APP }, request: `POST ${apps}/app/${APP}/restart`, scope: 'hub.app' },
  garbageCollectApp: { parameters: { id: APP }, request: `POST ${apps}/app/${APP}/gc`, scope: 'hub.app', older: true },
  enableApp: { parameters: { id: APP }, request: `PUT ${apps}/app/${APP}/enable`, scope: 'hub.app' },
  disableApp: { parameters: { id: APP }, request: `PUT ${apps}/app/${APP}/disable`, scope: 'hub.app' },
  getAppLocales: { parameters: { id: APP }, request: `GET ${apps}/app/${APP}/locale`, scope: 'hub.app.readonly' },
  installFromAppStore: {
    parameters: { appId: NEW_APP },
    request: `POST ${apps}/store`,
    body: { id: NEW_APP },
    scope: 'hub.app',
  },
  ping: { parameters: {}, request: 'GET /api/manager/system/ping' },
  getSessionMe: { parameters: {}, request: 'GET /api/manager/sessions/session/me' },
  createBackup: { parameters: {}, request: 'POST /api/manager/backup/backup', scope: 'hub.system' },
  getVoices: { parameters: {}, request: 'GET /api/manager/speech-output/voice/', scope: 'hub.system', older: true },
  speak: {
    parameters: { text: 'Hello' },
    request: 'POST /api/manager/speech-output/say',
    body: { text: 'Hello' },
    scope: 'hub.speech',
    older: true,
  },
  getInfo: { parameters: {}, request: 'GET /api/manager/system/', scope: 'hub.system.readonly' },
  getMemoryInfo: { parameters: {}, request: 'GET /api/manager/system/memory', scope: 'hub.system.readonly' },
  getStorageInfo: { parameters: {}, request: 'GET /api/manager/system/storage', scope: 'hub.system.readonly' },
  getLastBackup: {
    parameters: {},
    request: 'GET /api/manager/backup/option/lastSuccessfulBackup',
    scope: 'hub.system.readonly',
  },
  getUpdates: { parameters: {}, request: 'GET /api/manager/updates/update', scope: 'hub.updates.readonly' },
  getDevices: { parameters: {}, request: 'GET /api/manager/devices/device', scope: 'hub.device.readonly' },
  getFlows: { parameters: {}, request: 'GET /api/manager/flow/flow', scope: 'hub.flow.readonly' },
  getAdvancedFlows: { parameters: {}, request: 'GET /api/manager/flow/advancedflow', scope: 'hub.flow.readonly' },
  getLogs: { parameters: {}, request: 'GET /api/manager/insights/log', scope: 'hub.insights.readonly' },
  getLogEntries: {
    parameters: { owner: `homey:app:${APP}`, log: 'cpu', resolution: 'lastHour' },
    request: `GET /api/manager/insights/log/homey%3Aapp%3A${APP}/cpu/entry?resolution=lastHour`,
    scope: 'hub.insights.readonly',
  },
}

const NAMES = Object.keys(OPERATIONS).filter((name): name is OperationName => name in CASES)

/** Connects to a hub that has one key, with only this scope. */
async function connect(flavour: 'older' | 'newer' | 'self-hosted', scope: string | undefined) {
  const store = [{ id: NEW_APP, name: 'New', version: '1.0.0' }]
  const hub = await EmulatedHub.start({
    flavour,
    keys: { key: scope === undefined ? [] : [scope] },
    settleMs: 0,
    store,
  })
  const client = clientOf(hub.url, { pathPrefix: 'manager', hasApp: (id) => id === APP })
  onTestFinished(async () => {
    await client.close()
    await hub.close()
  })
  return { hub, client }
}

describe.each(['older', 'newer', 'self-hosted'] as const)('on a hub of the %s kind', (flavour) => {
  test.each(NAMES)('%s is sent as the hub documents it, and needs the documented permission only', async (name) => {
    const { request, body, scope, older } = CASES[name]
    const { hub, client } = await connect(flavour, scope)
    const lacking = older === true && flavour !== 'older'
    const run = <N extends OperationName>(operation: N) => client.call(operation, CASES[operation].parameters)
    if (lacking) await expect(run(name)).rejects.toMatchObject({ code: 'unsupported' })
    else await run(name)
    // Skip the first request, which is a ping.
    const [, seen] = hub.requests
    expect(`${seen?.method} ${seen?.path}`).toBe(request)
    expect(seen?.body).toEqual(body)
    expect(seen?.executed).toBe(!lacking)
  })
})

test.each(NAMES.filter((name) => CASES[name].scope !== undefined))(
  '%s names the permission that a key lacks',
  async (name) => {
    const { client } = await connect('older', undefined)
    const run = <N extends OperationName>(operation: N) => client.call(operation, CASES[operation].parameters)
    await expect(run(name)).rejects.toMatchObject({ code: 'forbidden', scope: CASES[name].scope })
  },
)
