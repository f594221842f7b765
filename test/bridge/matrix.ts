/**
 * Tests every outcome of every command over a real broker. The expectations do not depend on the command table, so that
 * the test finds errors in the command table.
 */
import type { AppSeed } from '../../src/emulator/hub.ts'
import { until } from '../support/until.ts'
import { type Answer, KEY, World } from '../support/world.ts'

export const COLUMNS = [
  'ok',
  'invalid',
  'forbidden',
  'unsupported',
  'offline',
  'expired',
  'retained',
  'duplicate',
] as const
type Column = (typeof COLUMNS)[number]

const APP = 'the.app'
const STORE_APP = 'com.harborlight.irrigation'

interface Row {
  readonly name: string
  readonly topic: (column: Column) => string
  readonly payload: (column: Column) => string
  /** The scopes of a key that lacks only the scope for this command; absent if the command needs none. */
  readonly lacking?: readonly string[]
  readonly olderOnly?: true
  /** Whether the payload may contain `expires_at`. Otherwise, only the message expiry of MQTT 5 applies. */
  readonly enveloped: boolean
  readonly repeatable?: true
}

const READ_ONLY = ['hub.app.readonly']
const SPEECH = ['hub.speech']
const app = (command: string, payload: Row['payload'] = () => '', more: Partial<Row> = {}): Row => ({
  name: `app/cmd/${command}`,
  topic: (column) => `home/app/${APP}/cmd/${command.replace('<name>', `s-${column}`)}`,
  payload,
  lacking: READ_ONLY,
  enveloped: true,
  ...more,
})
const ofHub = (command: string, ...rest: [payload?: Row['payload'], more?: Partial<Row>]): Row => ({
  ...app(command, ...rest),
  name: `hub/cmd/${command}`,
  topic: () => `home/cmd/${command}`,
})

export const ROWS: readonly Row[] = [
  app('enable'),
  app('disable'),
  app('enabled', () => 'OFF', { enveloped: false }),
  app('restart'),
  app('garbage-collect', () => '', { olderOnly: true }),
  app('get', () => '', { lacking: SPEECH }),
  app('get-std', () => '', { lacking: SPEECH }),
  app('get-settings'),
  app('get-locales', () => '', { lacking: SPEECH }),
  app('get-crash', () => '', { lacking: SPEECH }),
  app('get-history', () => '{"hours":1}', { lacking: SPEECH }),
  app('guard', () => '{"snooze":"30m"}'),
  app('update', () => '{"autoupdate":false}'),
  app('autoupdate', () => 'ON', { enveloped: false }),
  app('install'),
  app('uninstall', (column) => `{"confirm":"victim.${column}"}`, {
    topic: (column) => `home/app/victim.${column}/cmd/uninstall`,
  }),
  app('get-setting/<name>'),
  app('get-setting', (column) => `{"name":"s-${column}"}`),
  app('set-setting/<name>', () => '{"any":["value"]}', { enveloped: false }),
  app('set-setting', (column) => `{"name":"s-${column}","value":1}`),
  app('unset-setting/<name>'),
  app('unset-setting', (column) => `{"name":"t-${column}"}`),
  ofHub('get-apps', () => '{"filter":{"enabled":true}}', { lacking: SPEECH }),
  ofHub('install', () => `{"id":"${STORE_APP}"}`),
  ofHub('update-all'),
  ofHub('speak', () => '{"text":"Hello"}', { olderOnly: true }),
  ofHub('call', () => '{"item":"apps","path":"/app","query":{"a":1}}', { lacking: SPEECH }),
  ofHub('refresh', () => '', { lacking: SPEECH }),
  { name: 'bridge/cmd/log-level', topic: () => 'bridge/cmd/log-level', payload: () => 'debug', enveloped: false },
  { name: 'bridge/cmd/ping', topic: () => 'bridge/cmd/ping', payload: () => '', enveloped: true },
  {
    name: 'bridge/cmd/rollout',
    topic: () => 'bridge/cmd/rollout',
    // Only one rollout can run, so all columns use the same rollout, which runs until the test ends.
    payload: () => `{"command":"install","app":"${APP}","pause":"1h","transaction":"waves"}`,
    enveloped: true,
  },
  {
    name: 'bridge/cmd/rollout-cancel',
    topic: () => 'bridge/cmd/rollout-cancel',
    payload: () => '{"transaction":"waves"}',
    enveloped: true,
    repeatable: true,
  },
]

/** Returns the expected answer; `undefined` if the case does not exist. */
export function expected({ lacking, olderOnly, enveloped, repeatable }: Row, column: Column): string | undefined {
  const onHub = lacking !== undefined
  switch (column) {
    case 'ok':
      return 'ok'
    case 'duplicate':
      return repeatable ? 'ok' : 'replayed'
    case 'invalid':
      return 'invalid_payload'
    case 'forbidden':
      return onHub ? 'forbidden' : undefined
    case 'unsupported':
      return olderOnly ? 'unsupported' : undefined
    case 'offline':
      return onHub ? 'hub_unreachable' : undefined
    case 'expired':
      // A command in plain text for the bridge itself cannot expire, because it never waits.
      return onHub || enveloped ? 'expired' : undefined
    case 'retained':
      return 'retained'
  }
}

type Table = Map<string, Partial<Record<Column, string>>>

const seeds: AppSeed[] = [
  {
    id: APP,
    settings: Object.fromEntries(
      COLUMNS.flatMap((column) => [
        [`s-${column}`, 0],
        [`t-${column}`, 0],
      ]),
    ),
  },
  ...COLUMNS.map((column) => ({ id: `victim.${column}` })),
]

const code = (answer: Answer) => (answer.ok ? (answer.replayed ? 'replayed' : 'ok') : (answer.error?.code ?? '?'))

const ENV = { COMMANDS_ALLOW: '*', GUARD_WATCH: 'no.such.app' }
type Put = (row: Row, column: Column, answer: Answer) => void

/** Runs all cases: in one world with a working hub, and in one world for each kind of refusal. */
export async function runMatrix(): Promise<Table> {
  const table: Table = new Map(ROWS.map(({ name }) => [name, {}]))
  const put: Put = (row, column, answer) => {
    const cells = table.get(row.name)
    if (cells !== undefined) cells[column] = code(answer)
  }
  await useWorkingHub(put)
  await Promise.all([useKey(READ_ONLY, put), useKey(SPEECH, put), useNewerHubThatFails(put)])
  return table
}

async function useWorkingHub(put: Put): Promise<void> {
  await using good = await World.start({ broker: 'mosquitto', env: ENV, hub: { apps: seeds } })
  for (const row of ROWS) {
    put(row, 'ok', await good.request(row.topic('ok'), row.payload('ok')))
    put(row, 'invalid', await good.request(row.topic('invalid'), Buffer.from([0x7b, 0xff, 0x7d])))
    if (expected(row, 'expired') !== undefined) put(row, 'expired', await askExpired(good, row))
    put(row, 'retained', await good.request(row.topic('retained'), row.payload('retained') || '{}', { retain: true }))
    const again = { properties: { correlationData: Buffer.from(`again ${row.name}`) } }
    await good.request(row.topic('duplicate'), row.payload('duplicate'), again)
    put(row, 'duplicate', await good.request(row.topic('duplicate'), row.payload('duplicate'), again))
  }
}

async function useKey(lacking: readonly string[], put: Put): Promise<void> {
  const env = { ...ENV, HUB_REALTIME: 'false' }
  await using poor = await World.start({ env, hub: { apps: seeds, keys: { [KEY]: lacking } } })
  for (const row of ROWS.filter((one) => one.lacking?.join() === lacking.join())) {
    put(row, 'forbidden', await poor.request(row.topic('forbidden'), row.payload('forbidden')))
  }
}

async function useNewerHubThatFails(put: Put): Promise<void> {
  await using newer = await World.start({ env: ENV, hub: { apps: seeds, flavour: 'newer' } })
  for (const row of ROWS.filter(({ olderOnly }) => olderOnly)) {
    put(row, 'unsupported', await newer.request(row.topic('unsupported'), row.payload('unsupported')))
  }
  await newer.hub.close()
  await until('offline', () => newer.observer.last('hub2mqtt/home/state') === 'offline')
  for (const row of ROWS.filter(({ lacking }) => lacking !== undefined)) {
    put(row, 'offline', await newer.request(row.topic('offline'), row.payload('offline')))
  }
}

/** Uses `expires_at` if the payload may contain it, otherwise the message expiry of MQTT 5. */
async function askExpired(world: World, row: Row): Promise<Answer> {
  const topic = row.topic('expired')
  if (row.enveloped) {
    const payload = row.payload('expired')
    const object: object = payload === '' ? {} : JSON.parse(payload)
    return world.request(topic, JSON.stringify({ ...object, expires_at: '2020-01-01T00:00:00Z' }))
  }
  world.hub.behave('slow-headers', { ms: 1500, times: 1, operation: 'restartApp' })
  const ahead = world.request(`home/app/${APP}/cmd/restart`, '', {
    properties: { correlationData: Buffer.from(topic) },
  })
  const answer = await world.request(topic, row.payload('expired'), { properties: { messageExpiryInterval: 1 } })
  await ahead
  return answer
}
