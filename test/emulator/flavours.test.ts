import { describe, expect } from 'vitest'
import { isRecord } from '../../src/base/json.ts'
import { inPath } from '../../src/emulator/core/endpoint.ts'
import { ENTRIES, type Entry, entriesFor, type OperationName } from '../../src/emulator/core/table.ts'
import { FLAVOURS, type Flavour } from '../../src/emulator/records.ts'
import { acknowledged, ask, connected, HUE, hubOf, KEY, opened, PUMP, subscribed, test } from './support.ts'

/** Inputs of operations. An operation without an entry takes at most the id of an app. */
const GIVEN: Partial<Record<OperationName, Readonly<Record<string, unknown>>>> = {
  updateApp: { app: { autoupdate: false } },
  getAppStd: { message: '' },
  getAppSetting: { name: 'transition' },
  setAppSetting: { name: 'transition', value: 1 },
  unsetAppSetting: { name: 'transition' },
  installFromAppStore: { id: PUMP },
  say: { text: 'Hello' },
  createNotification: { excerpt: 'The door is open.' },
  getSetting: { name: 'mine' },
  setSetting: { name: 'mine', value: [1] },
  unsetSetting: { name: 'mine' },
  getLogEntries: { uri: `homey:app:${HUE}`, id: 'cpu' },
}

/** Requests that must precede some operations. */
const PREPARED: Partial<Record<OperationName, string>> = {
  deleteNotification: 'POST /notifications/notification',
  getSetting: 'PUT /settings/setting/mine',
  unsetSetting: 'PUT /settings/setting/mine',
}

/** Replaces every value by its type, because ids and times differ between two requests. */
function shapeOf(value: unknown): unknown {
  if (isRecord(value)) return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, shapeOf(one)]))
  return Array.isArray(value) ? value.map(shapeOf) : value === null ? null : typeof value
}

const prefixOf = (flavour: Flavour) => (flavour === 'reference' ? '/api/managers' : '/api/manager')

/** Starts a hub that is prepared for the operation; also returns the operation's input. */
async function prepared(flavour: Flavour, { name, endpoint }: Entry) {
  const hub = await hubOf({ flavour })
  const args: Record<string, unknown> = { ...(endpoint.path.includes(':id') && { id: HUE }), ...GIVEN[name] }
  const line = PREPARED[name]?.replace(' ', ` ${prefixOf(flavour)}`)
  if (line === undefined) return { hub, args }
  const made = await ask(hub, line, { body: { value: 1, excerpt: 'before' } })
  expect(made.status).toBe(200)
  if (isRecord(made.json)) args['id'] = made.json['id']
  return { hub, args }
}

describe.each(FLAVOURS)('on a hub of the %s kind', (flavour) => {
  test.each(entriesFor(flavour))('answers $name in the same form over REST and the realtime channel', async (entry) => {
    const { method, path, alias, wholeBody } = entry.endpoint
    const { hub, args } = await prepared(flavour, entry)
    const target = inPath(path).reduce((text, one) => text.replace(`:${one}`, String(args[one])), path)
    const body = wholeBody === undefined ? args : args[wholeBody]
    const own = flavour === 'reference' ? (alias ?? target) : target
    const sends = method === 'POST' || method === 'PUT'
    const answer = await ask(hub, `${method} ${prefixOf(flavour)}/${entry.item}${own}`, sends ? { body } : {})
    expect(answer.status).toBe(200)

    const again = await prepared(flavour, entry)
    const { api } = await subscribed(again.hub)
    const message = { uri: `homey:manager:${entry.item}`, operation: entry.name, args: again.args }
    const [error, result] = await acknowledged(api, 'api', message)
    expect(error).toBeNull()
    expect(shapeOf(result)).toEqual(shapeOf(answer.json))
  })

  test('an operation that it lacks is refused with its own error', async () => {
    const hub = await hubOf({ flavour })
    const older = { status: 500, json: { error: 'missing_api_method' } }
    const others = { status: 404, json: { error: 'not_found' } }
    const wanted = flavour === 'older' ? older : others
    expect(await ask(hub, `GET ${prefixOf(flavour)}/apps/nowhere`)).toMatchObject(wanted)
    expect(await ask(hub, `GET ${prefixOf(flavour)}/zones/zone`)).toMatchObject(wanted)
    expect(await ask(hub, 'GET /api/nothing')).toMatchObject(others)
    const lacking = ENTRIES.filter((entry) => !entriesFor(flavour).includes(entry))
    for (const { name, item, endpoint } of lacking) {
      const path = endpoint.path.replace(':id', HUE)
      expect([name, await ask(hub, `${endpoint.method} ${prefixOf(flavour)}/${item}${path}`)]).toMatchObject([
        name,
        wanted,
      ])
    }
  })
})

test.each([
  ['older', ['getAppUsage']],
  ['newer', ['garbageCollectApp', 'say', 'getVoices']],
  ['self-hosted', ['garbageCollectApp', 'say', 'getVoices']],
  [
    'reference',
    [
      ...['getSessionMe', 'getVoices', 'getOptionLastSuccessfulBackup', 'getDevices', 'getFlows'],
      ...['getAdvancedFlows', 'getLogs', 'getLogEntries', 'getUpdates'],
    ],
  ],
] as const)('a hub of the %s kind lacks %j', (flavour, names) => {
  const lacking = ENTRIES.filter((entry) => !entriesFor(flavour).includes(entry))
  expect(lacking.map(({ name }) => name)).toEqual(names)
})

test.each([
  ['newer', true],
  ['self-hosted', '2.5.0'],
  ['older', { version: '2.5.0', permissions: [] }],
] as const)('a hub of the %s kind reports an update as %j', async (flavour, told) => {
  expect((await hubOf({ flavour })).apps.get(PUMP)?.updateAvailable).toEqual(told)
})

test.each([
  ['newer', false],
  ['self-hosted', false],
  ['older', true],
  ['reference', true],
] as const)('the namespace of a hub of the %s kind opens without its token: %s', async (flavour, opens) => {
  const { manager, root } = connected(await hubOf({ flavour }))
  await acknowledged(root, 'handshakeClient', { token: KEY, homeyId: 'any' })
  expect((await opened(manager.socket('/api'))) === 'open').toBe(opens)
})

test('a token opens the namespace only on the connection that got it', async ({ hub }) => {
  const welcome = async () => {
    const { manager, root } = connected(hub)
    const [, { token }] = (await acknowledged(root, 'handshakeClient', { token: KEY })).map(Object)
    return { manager, token }
  }
  const [one, other] = [await welcome(), await welcome()]
  const api = one.manager.socket('/api', { auth: { token: other.token } })
  expect(await opened(api)).toMatchObject({ data: { statusCode: 401 } })
})

test('a hub with a limit accepts four requests within 400 ms and refuses the fifth, without executing it', async () => {
  const hub = await hubOf({ rateLimit: true })
  const lines = [1, 2, 3, 4, 5].map((value) => `PUT /apps/app/${HUE}/setting/s${value}`)
  const answers = await Promise.all(lines.map((line) => ask(hub, line, { body: { value: 1 } })))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 429])
  expect(Object.keys(hub.settings(HUE)).filter((name) => /^s\d$/.test(name))).toHaveLength(4)
})

test('a Self-Hosted Server without a licence refuses everything, until it has one', async () => {
  const hub = await hubOf({ flavour: 'self-hosted' })
  hub.behave('subscription-inactive')
  const refusal = { status: 403, json: { statusCode: 403, error: 'Subscription Inactive' } }
  expect(await ask(hub, 'GET /system/ping', { key: null })).toMatchObject(refusal)
  expect(await ask(hub, 'GET /apps/app')).toMatchObject(refusal)
  await expect(subscribed(hub)).rejects.toMatchObject({ statusCode: 403, error: 'Subscription Inactive' })
  hub.behaveWell()
  await subscribed(hub)
})
