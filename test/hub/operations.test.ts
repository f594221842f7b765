/** Compares each operation of the client with the operation of the emulated hub that it reaches, which has its own table. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { ENTRIES } from '../../src/emulator/core/table.ts'
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { OPERATIONS, type OperationName, type Parameters } from '../../src/hub/operations.ts'
import { clientOf } from './support.ts'

const APP = 'com.athom.hue'
const NEW_APP = 'com.example.new'

const PARAMETERS: { readonly [N in OperationName]: Parameters<N> } = {
  getApps: {},
  getApp: { id: APP },
  getAppRecord: { id: APP },
  updateApp: { id: APP, update: { autoupdate: false } },
  uninstallApp: { id: APP, purgeSettings: true },
  getAppStd: { id: APP },
  getAppSettings: { id: APP },
  getAppSetting: { id: APP, name: 'transition' },
  setAppSetting: { id: APP, name: 'a/b ü', value: [1, null] },
  unsetAppSetting: { id: APP, name: 'transition' },
  restartApp: { id: APP },
  garbageCollectApp: { id: APP },
  enableApp: { id: APP },
  disableApp: { id: APP },
  getAppLocales: { id: APP },
  installFromAppStore: { appId: NEW_APP },
  ping: {},
  getSessionMe: {},
  createBackup: {},
  getVoices: {},
  speak: { text: 'Hello' },
  getInfo: {},
  getMemoryInfo: {},
  getStorageInfo: {},
  getLastBackup: {},
  getUpdates: {},
  getDevices: {},
  getFlows: {},
  getAdvancedFlows: {},
  getLogs: {},
  getLogEntries: { owner: `homey:app:${APP}`, log: 'cpu', resolution: 'lastHour' },
}

/** The names of operations that the hub calls differently. */
const OF_HUB: Partial<Record<OperationName, string>> = {
  getAppRecord: 'getApp',
  createBackup: 'scheduleBackup',
  speak: 'say',
  getLastBackup: 'getOptionLastSuccessfulBackup',
}

/** The ends of the paths, and the bodies, of requests that have more input than the id of an app. */
const INPUTS: Partial<Record<OperationName, readonly [end: string, body?: object]>> = {
  updateApp: [`/${APP}`, { autoupdate: false }],
  uninstallApp: [`/${APP}?purgeSettings=true`],
  getAppStd: [`/${APP}/crashlog`, { message: '' }],
  setAppSetting: ['/setting/a%2Fb%20%C3%BC', { value: [1, null] }],
  installFromAppStore: ['/store', { id: NEW_APP }],
  speak: ['/say', { text: 'Hello' }],
  getLogEntries: [`/homey%3Aapp%3A${APP}/cpu/entry?resolution=lastHour`],
}

const isName = (name: string): name is OperationName => name in PARAMETERS
const CASES = Object.keys(OPERATIONS).flatMap((name) => {
  const entry = isName(name) && ENTRIES.find((one) => one.name === (OF_HUB[name] ?? name))
  if (!entry) return []
  const { needs, only } = entry.endpoint
  const scope = needs === 'nothing' || needs === 'key' ? undefined : needs.replace('homey', 'hub')
  return [{ name, operation: entry.name, scope, only }]
})

/** Connects to a hub that has one key, with only this scope. */
async function connect(flavour: 'older' | 'newer' | 'self-hosted', scope: string | undefined) {
  const store = [{ id: NEW_APP, name: 'New', version: '1.0.0' }]
  const keys = { key: scope === undefined ? [] : [scope] }
  const hub = await EmulatedHub.start({ flavour, keys, settleMs: 0, store })
  const client = clientOf(hub.url, { pathPrefix: 'manager', hasApp: (id) => id === APP })
  onTestFinished(async () => {
    await client.close()
    await hub.close()
  })
  const run = <N extends OperationName>(name: N) => client.call(name, PARAMETERS[name])
  return { hub, run }
}

test('each operation has a counterpart on the hub', () => expect(CASES).toHaveLength(Object.keys(OPERATIONS).length))

describe.each(['older', 'newer', 'self-hosted'] as const)('on a hub of the %s kind', (flavour) => {
  test.each(CASES)('$name reaches $operation, and needs $scope only', async ({ name, operation, scope, only }) => {
    const { hub, run } = await connect(flavour, scope)
    const lacking = only?.includes(flavour) === false
    if (lacking) await expect(run(name)).rejects.toMatchObject({ code: 'unsupported' })
    else await run(name)
    // Skip the first request, which is a ping.
    const [, seen] = hub.requests
    const [end = '', body] = INPUTS[name] ?? []
    expect(seen).toMatchObject({ path: expect.stringMatching(`${RegExp.escape(end)}$`), executed: !lacking })
    expect(seen?.body).toEqual(body)
    if (!lacking) expect(seen?.operation).toBe(operation)
  })
})

test.each(CASES.filter(({ scope }) => scope !== undefined))('$name names $scope if a key lacks it', async (one) => {
  const { run } = await connect('older', undefined)
  await expect(run(one.name)).rejects.toMatchObject({ code: 'forbidden', scope: one.scope })
})
