import { rmSync } from 'node:fs'
import { rootCertificates } from 'node:tls'
import { test as base, describe, expect } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { examine, lineOf, reportOf } from '../../../src/cli/doctor/doctor.ts'
import { about } from '../../../src/cli/doctor/finding.ts'
import { LEADER, ownerOf } from '../../../src/cluster/fleet.ts'
import type { EmulatedHub } from '../../../src/emulator/hub.ts'
import { FLAVOURS } from '../../../src/emulator/records.ts'
import { startBridge } from '../../support/bridge.ts'
import { Mosquitto, mosquittoPath } from '../../support/brokers.ts'
import { Observer } from '../../support/observer.ts'
import { freePort } from '../../support/ports.ts'
import { temporaryFile } from '../../support/temporary-file.ts'
import { closeAtEnd, configured, embedded, emulate, KEY, open, say } from './support.ts'

closeAtEnd()

const test = base.extend<{ readonly hub: EmulatedHub }>({ hub: async ({ task: _ }, use) => use(await emulate()) })

describe.concurrent('doctor', () => {
  test('finds no problem with an installation that works', async ({ hub }) => {
    const { findings, problems } = await say({ HUB_URL: hub.url, MQTT_URL: (await embedded()).url })
    expect(problems).toEqual([])
    expect(findings.map(lineOf)).toEqual([
      expect.stringContaining('configuration: no mistakes; one hub'),
      'ok       store: the public app store is not used (updates.store)',
      expect.stringMatching(/^ok {6}broker: connected to mqtt:.* with MQTT 3\.1\.1$|^ok +broker: connected/),
      expect.stringContaining('its rules permit commands, answers and discovery'),
      expect.stringContaining(`a hub answers at ${hub.url}, firmware ${hub.version}`),
      expect.stringContaining('the API key is accepted, with hub.app, hub.speech'),
      expect.stringContaining(`${hub.apps.size} apps`),
      'ok       hub home: hub.system.readonly would add the health of the hub',
      "ok       hub home: hub.updates.readonly would add updates of the hub's firmware",
      'ok       hub home: hub.device.readonly would add the devices of each app',
      'ok       hub home: hub.flow.readonly would add the flows of each app',
      'ok       hub home: hub.insights.readonly would add CPU and memory of each app from before the bridge started',
      expect.stringContaining('the realtime channel works'),
    ])
    // The doctor must not send requests that change the hub.
    expect(hub.requests.filter(({ method }) => !['GET', 'HEAD', 'EMIT'].includes(method))).toEqual([])
  })

  test('reports that the public store is queried, without querying it itself', async ({ hub }) => {
    const { findings } = await say({ HUB_URL: hub.url, MQTT_URL: (await embedded()).url, UPDATES_STORE: 'true' })
    expect(findings.map(lineOf)).toContain(
      'ok       store: the public app store is queried once a day for each installed app (updates.store)',
    )
  })

  test('tests each address of the broker, and names none in the report', async ({ hub }) => {
    const { url } = await embedded()
    const { findings, problems, report } = await say({
      HUB_URL: hub.url,
      MQTT_URL: `${url},mqtt://localhost:${new URL(url).port},mqtt://no-such.invalid`,
    })
    const lines = findings.map(lineOf)
    expect(lines).toContainEqual(expect.stringContaining(`connected to ${url} with`))
    expect(lines).toContainEqual(expect.stringContaining('connected to mqtt://localhost'))
    expect(lines).toContainEqual(expect.stringContaining(`messages published at ${url} arrive at mqtt://localhost`))
    expect(problems).toEqual([expect.stringContaining('no connection to mqtt://no-such.invalid')])
    expect(report).toMatch(/<broker>.*<broker 2>.*<broker 3>/s)
    expect(report).not.toMatch(/localhost|no-such/)
  })

  test('reports a certificate that can no longer be read as a problem of the broker, and tests the hubs as usual', async ({
    hub,
  }) => {
    const ca = await temporaryFile(open, 'ca.pem', rootCertificates[0] ?? '')
    const loaded = configured({ HUB_URL: hub.url, MQTT_URL: 'mqtts://127.0.0.1:1', MQTT_CA_FILE: ca })
    rmSync(ca)
    const lines = (await Array.fromAsync(examine({ ...loaded, clock: systemClock }))).map(lineOf)
    expect(lines.filter((line) => line.startsWith('problem'))).toEqual([
      expect.stringMatching(
        /^problem {2}broker: .*mqtt\.ca_file.* no longer be read: there is no such file\n.*restore/,
      ),
    ])
    expect(lines).toContainEqual(expect.stringContaining('the API key is accepted'))
  })

  test('detects addresses of independent brokers', async ({ hub }) => {
    const [one, other] = [await embedded(), await embedded()]
    const { problems } = await say({ HUB_URL: hub.url, MQTT_URL: `${one.url},${other.url}` })
    expect(problems).toEqual([
      expect.stringContaining(`messages published at ${one.url} do not arrive at ${other.url}`),
    ])
  })

  test.each(FLAVOURS)('finds no problem with a hub of the %s kind that asks for fewer requests', async (flavour) => {
    const hub = await emulate({ flavour, rateLimit: true })
    const { findings, problems } = await say({ HUB_URL: hub.url, MQTT_URL: (await embedded()).url })
    expect(problems).toEqual([])
    expect(findings.map(lineOf)).toContainEqual(expect.stringContaining('the realtime channel works'))
  })

  test('lists the missing permissions of the key for commands that the configuration allows', async () => {
    const hub = await emulate({ keys: { [KEY]: ['hub.app.readonly'] } })
    const broker = await embedded()
    const access = { HUB_URL: hub.url, MQTT_URL: broker.url }
    const notes = async (more = {}) =>
      (await say({ ...access, ...more })).findings.filter(({ outcome }) => outcome === 'note').map(lineOf)
    expect(await notes()).toContainEqual(expect.stringMatching(/no enable, disable,.* restart.*: the API key lacks/))
    expect((await notes({ COMMANDS_READ_ONLY: 'true' })).join()).not.toMatch(/restart|enable/)
    const settings = { SETTINGS_PUBLISH: '{"com.athom.hue":{"night":"switch"}}' }
    expect((await say({ ...access, ...settings })).problems).toEqual([
      expect.stringMatching(/settings\.publish names settings, but the API key lacks/),
    ])
  })

  test('explains that the embedded broker exists only while the bridge runs', async ({ hub }) => {
    const { problems, findings } = await say({ HUB_URL: hub.url, MQTT_EMBEDDED_PORT: String(await freePort()) })
    expect(problems).toEqual([])
    expect(findings.map(lineOf)).toContainEqual(expect.stringContaining('while hub2mqtt runs'))
  })

  test('reports that the embedded broker cannot start where another broker listens', async ({ hub }) => {
    const { port } = await embedded()
    const variables = { HUB_URL: hub.url, MQTT_EMBEDDED_PORT: String(port) }
    expect((await say(variables)).problems).toEqual([
      expect.stringMatching(/the embedded broker cannot start: another broker listens at mqtt:.*→ to use that broker/s),
    ])
    await using observer = await Observer.on(port, { protocol: '3.1.1' })
    await observer.publish('hub2mqtt/bridge/state', 'online', { retain: true })
    expect((await say(variables)).problems).toEqual([])
  })

  test('shows neither the key nor a control character, whatever a hub sends', async ({ hub }) => {
    const description = `\u001b[2J\u009b31m for ${KEY}`
    hub.behave('answer-status', { status: 500, description, operation: 'getApps' })
    const { problems, report } = await say({ HUB_URL: hub.url, MQTT_URL: (await embedded()).url })
    expect(problems).toEqual([expect.stringMatching(/The hub failed: 500.*→ check that the hub is running/s)])
    for (const text of [...problems, report]) {
      expect(text.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
      expect(text).not.toContain(KEY)
    }
  })

  test('writes an anonymous report', async ({ hub }) => {
    const file = { HUB_URL: hub.url, HUB_NAME: 'castle', MQTT_URL: `mqtt://127.0.0.1:${await freePort()}` }
    const { report } = await say({
      ...file,
      MQTT_BASE_TOPIC: 'secret-base',
      MQTT_USERNAME: 'alice',
      MQTT_PASSWORD: 'pw-canary',
    })
    expect(report).toContain('hub2mqtt 1.2.3, Node')
    expect(report).toContain('hub <hub 1>: a hub answers at')
    for (const word of ['castle', '127.0.0.1', 'secret-base', 'alice', 'pw-canary', KEY])
      expect(report).not.toContain(word)
  })

  test('omits from the report the addresses in messages of the system, and the folder of the configuration file', async ({
    hub,
  }) => {
    const port = await freePort()
    const variables = { HUB_URL: hub.url, MQTT_URL: `mqtt://[::1]:${port},mqtt://localhost:${port}` }
    const { problems, report } = await say(variables)
    expect(problems).toEqual([expect.stringContaining(`::1:${port}`), expect.stringContaining('mqtt://localhost')])
    expect(report).not.toMatch(/::1|127\.0\.0\.1|localhost/)
    const warning = about('configuration').note('hubs.home.api_key (/home/alice/my house/hub2mqtt.yaml line 4): all')
    expect(reportOf([warning], configured(variables).config, '1.2.3')).toContain(
      'configuration: hubs.<hub 1>.api_key (hub2mqtt.yaml line 4): all',
    )
  })

  test('replaces a name in the report that is a word of what replaces another name', async ({ hub }) => {
    const { report } = await say({ HUB_URL: hub.url, HUB_NAME: 'broker', MQTT_URL: (await embedded()).url })
    expect(report).toContain('hub <hub 1>: a hub answers at http://<broker>:')
  })
})

test.concurrent('doctor in a fleet checks the topics of its own member and of the fleet, and detects members with a different configuration', async () => {
  const hub = await emulate()
  const broker = await embedded()
  const access = { HUB_URL: hub.url, MQTT_URL: broker.url }
  const bridge = startBridge({ HUB_API_KEY: KEY, ...access, FLEET_SHARD: '1/1' })
  open.use(bridge)
  await using observer = await Observer.on(broker.port)
  for (const topic of ['hub2mqtt/bridge/state', 'hub2mqtt/bridge/shard-1/state']) {
    await observer.until(topic, () => observer.last(topic) === 'online')
  }
  await observer.until('the fleet', () => observer.last('hub2mqtt/fleet'))
  const { findings, problems } = await say({ ...access, FLEET_SHARD: '1/1' })
  expect(problems).toEqual([])
  expect(findings.map(lineOf)).toEqual(
    expect.arrayContaining([
      'ok       fleet: the member shard-1 is online',
      'ok       fleet: the fleet with the base topic hub2mqtt is online, with one member',
    ]),
  )
  expect((await say({ ...access, FLEET_SHARD: '1/3' })).problems).toEqual([
    expect.stringContaining('its members use a count of 1, this configuration 3'),
  ])
  const other = await emulate()
  const hostOf = (url: string) => new URL(url).host
  expect((await say({ ...access, HUB_URL: other.url, FLEET_SHARD: '1/1' })).problems).toEqual([
    expect.stringContaining(`hubs that this configuration does not have: home at ${hostOf(hub.url)}`),
    expect.stringContaining(`no member serves a hub of this configuration, unless it is being handed over: home at`),
  ])
  expect((await say(access)).problems).toEqual([
    expect.stringMatching(
      /a fleet of one member with the base topic hub2mqtt is online: version \S+, since 2.*, with home at .*→ to join it.*mqtt\.base_topic/s,
    ),
  ])
  const astray = startBridge({ HUB_API_KEY: KEY, ...access, FLEET_SHARD: '2/2' })
  open.use(astray)
  await observer.until('another', () => observer.last('hub2mqtt/bridge/shard-2/info') !== undefined)
  expect((await say({ ...access, FLEET_SHARD: '1/1' })).problems.join('\n')).toContain(
    '2 members are online, and not all of them use that count',
  )
  await astray.stop()
  const port = await freePort()
  const leases = await say({ ...access, FLEET_NATS: `nats://localhost:${port}`, FLEET_MEMBER: 'castle' })
  expect(leases.problems).toEqual([
    expect.stringContaining('share the hubs by number, this configuration by leases'),
    expect.stringMatching(/NATS: no connection to nats:.*4222\) and whether the server is running/s),
  ])
  expect(leases.report).toMatch(/no connection to nats:\/\/<nats>/)
  expect(leases.report).not.toMatch(/localhost|castle/)
  await bridge.stop()
  const offline = (await say({ ...access, FLEET_SHARD: '1/1' })).findings.filter(({ outcome }) => outcome !== 'ok')
  expect(offline.map(lineOf)).toEqual([
    'note     fleet: the member shard-1 is offline',
    'note     fleet: the fleet with the base topic hub2mqtt is offline, with one member',
  ])
  expect((await say(access)).findings.map(lineOf)).toContain(
    'ok       broker: no bridge with the base topic hub2mqtt is online; one has used this broker before',
  )
})

test.concurrent('doctor in a fleet names the members that are not online', async () => {
  const hub = await emulate()
  const broker = await embedded()
  const leader = ownerOf(LEADER, ['shard-1', 'shard-2'])
  const FLEET_SHARD = leader === 'shard-1' ? '1/2' : '2/2'
  const access = { HUB_URL: hub.url, MQTT_URL: broker.url, FLEET_SHARD }
  open.use(startBridge({ HUB_API_KEY: KEY, ...access }))
  await using observer = await Observer.on(broker.port)
  await observer.until('the fleet', () => observer.last('hub2mqtt/fleet'))
  await observer.until('the leader', () => observer.last('hub2mqtt/bridge/state') === 'online')
  const missing = leader === 'shard-1' ? 'shard-2' : 'shard-1'
  expect((await say(access)).problems).toEqual([expect.stringContaining(`access rules hide: ${missing}\n`)])
})

describe.skipIf(mosquittoPath === undefined).concurrent('doctor and the ACL of a broker', () => {
  /** @param acl the rules for the bridge's user */
  async function ruled(acl: readonly string[], more: Readonly<Record<string, string>> = {}) {
    const hub = await emulate()
    await using broker = await Mosquitto.start({ acl: ['user bridge', ...acl], users: { bridge: 'right' } })
    const login = { MQTT_USERNAME: 'bridge', MQTT_PASSWORD: 'right' }
    const { findings, problems } = await say({ HUB_URL: hub.url, MQTT_URL: broker.url, ...login, ...more })
    return {
      problems: problems.join('\n'),
      rules: findings
        .map(lineOf)
        .filter((line) => line.includes('rules'))
        .join(),
    }
  }

  test('names each kind of topic that the ACL does not permit', async () => {
    const { problems } = await ruled(['topic readwrite hub2mqtt/bridge/#', 'topic read hub2mqtt/#'])
    expect(problems).toMatch(/publish hub2mqtt\/home\/result\/doctor/)
    expect(problems).toMatch(/publish hub2mqtt\/home\/app\/doctor\/result\/doctor/)
    expect(problems).toMatch(/publish homeassistant\/device\/hub2mqtt--doctor\/config/)
    expect(problems).not.toContain('bridge/probe')
    expect(problems).toMatch(/ {9}→ .*config\/mosquitto\/acl/)
  })

  test('detects commands that cannot be read, and reports where that cannot be tested', async () => {
    const rest = ['topic readwrite homeassistant/#', 'topic readwrite hub2mqtt/bridge/#', 'topic write hub2mqtt/#']
    const answers = ['topic read hub2mqtt/+/result/#', 'topic read hub2mqtt/+/app/+/result/#']
    const { rules: hidden } = await ruled([...rest, ...answers])
    expect(hidden).toContain('read hub2mqtt/home/cmd/doctor')
    expect(hidden).toContain('read hub2mqtt/home/app/doctor/cmd/doctor')
    const others = ['home/cmd/#', 'home/app/+/cmd/#'].map((one) => `topic read hub2mqtt/${one}`)
    expect((await ruled([...rest, ...others])).problems).toContain('read hub2mqtt/home/app/doctor/result/doctor')
    expect((await ruled(['topic deny hub2mqtt/home/app/+/cmd/#', 'topic readwrite #'])).rules).toContain(
      'permit answers and discovery; commands could not be tested',
    )
  })

  test('requires the topics of its own member in a fleet', async () => {
    const acl = ['topic readwrite hub2mqtt/bridge/shard-1/#', 'topic read hub2mqtt/#']
    const said = async (shard: string) => (await ruled(acl, { FLEET_SHARD: shard })).problems
    expect(await said('1/2')).not.toContain('bridge/')
    expect(await said('2/2')).toContain('publish hub2mqtt/bridge/shard-2/probe')
  })
})
