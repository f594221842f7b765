/** The entry points for external data: how to generate inputs, their maximum size, and how to feed them. */
import { connect } from 'node:net'
import pino from 'pino'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { Rows } from '../../src/cluster/rows.ts'
import { loadConfig } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/mistakes.ts'
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { HubError } from '../../src/hub/errors.ts'
import { Hub } from '../../src/hub/hub.ts'
import { typeOf } from '../../src/web/server/api/icons.ts'
import { HttpGateway } from '../support/http-gateway.ts'
import { freePort } from '../support/ports.ts'
import type { Random } from '../support/random.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'
import { largest, nasty, nastyJson } from './nasty.ts'
import { type Entry, fuzzed } from './run.ts'

const KiB = 1024
const MiB = 1024 * KiB
const KEYS = { key: ['hub.app', 'hub.speech'] }
const log = pino({ level: 'silent' })
const nothing = { [Symbol.asyncDispose]: () => Promise.resolve() }
/** A clock that shortens all delays to a hundredth. */
const fastClock: Clock = { ...systemClock, after: (ms, run) => systemClock.after(ms / 100, run) }

async function openHub(realtime: boolean) {
  await using open = new AsyncDisposableStack()
  const emulated = await EmulatedHub.start({
    keys: KEYS,
    settleMs: 0,
    flavour: 'older',
    apps: [{ id: 'a' }, { id: 'b' }],
  })
  open.defer(() => emulated.close())
  const gateway = open.use(await HttpGateway.to(Number(new URL(emulated.url).port)))
  const options = {
    url: `http://127.0.0.1:${gateway.port}`,
    ...{ apiKey: () => 'key', pathPrefix: 'auto' as const, shows: () => true, realtime },
    ...{ pollInterval: 1e9, pollIntervalFallback: 1e9, timeoutMs: 6_000_000, maxRequests: 4 },
  }
  const hub = new Hub(options, { clock: fastClock, log, random: () => 0.1 })
  open.defer(() => hub.destroy())
  hub.start()
  await until('the list', () => hub.apps.complete && hub.status.online)
  if (realtime) await until('realtime', () => hub.status.realtime === 'connected')
  const opened = open.move()
  return { hub, emulated, gateway, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

const refused = (error: unknown) => {
  if (!(error instanceof HubError)) throw error
}

const FIELDS = 'id name version state crashedMessage crashedCount updateAvailable usage author'.split(' ')
const record = (random: Random, max: number) => `{"id":"a","${random.pick(FIELDS)}":${nastyJson(random, max)}}`
const list = (random: Random, max: number) =>
  random.pick([() => nastyJson(random, max), () => `{"a":${record(random, max)}}`, () => nasty(random, max)])()

const rest: Entry<{
  readonly operation: 'getApps' | 'getApp' | 'getAppSettings'
  readonly text: string
  readonly status: number
}> = {
  name: 'hub: REST answers',
  batch: 1,
  input: (random) => {
    const status = random.pick([200, 200, 200, 403, 500])
    const text = list(random, 5 * MiB)
    const said = status === 200 ? text : JSON.stringify({ error: 'no', error_description: text })
    // Limit the answers: the gateway runs in the same thread, so larger answers would only measure its work.
    const cut = Buffer.from(said)
      .subarray(0, 5 * MiB + 1)
      .toString()
    return { operation: random.pick(['getApps', 'getApp', 'getAppSettings']), text: cut, status }
  },
  first: largest(5 * MiB).flatMap((text) => [
    { operation: 'getApps', text, status: 200 } as const,
    { operation: 'getAppSettings', text, status: 200 } as const,
    { operation: 'getApp', text: `{"id":"a","name":${text.slice(20)}}`, status: 200 } as const,
  ]),
  async open() {
    const opened = await openHub(false)
    const { hub, gateway } = opened
    return {
      async feed(inputs) {
        for (const { operation, text, status } of inputs) {
          const heal = gateway.rule(({ path }) => {
            if (path.endsWith('/ping')) return undefined
            return { status, headers: { 'content-type': 'application/json' }, text }
          })
          await (operation === 'getApps' ? hub.apps.refresh() : hub.call(operation, { id: 'a' })).catch(refused)
          heal()
        }
      },
      [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
    }
  },
}

const EVENT = '42/api,["homey:manager:apps","app.update",'
const realtime: Entry<string> = {
  name: 'hub: realtime packets',
  batch: 50,
  input: (random) => {
    const max = MiB
    return random.chance(0.98)
      ? `42/api,["homey:manager:apps",${random.pick(['"app.update"', '"app.create"', nastyJson(random, 200)])},${random.chance(0.5) ? record(random, max) : nastyJson(random, max)}]`
      : random.pick(['', '0', '40', '42', '43', '44', EVENT]) + nasty(random, max)
  },
  first: largest(MiB - 100).map((text) => `${EVENT}${text}]`),
  async open() {
    const opened = await openHub(true)
    const { hub, gateway, emulated } = opened
    let sent = 0
    return {
      async feed(packets) {
        await until('realtime', () => hub.status.realtime === 'connected', 60_000)
        for (const packet of packets) gateway.sendText(packet)
        sent += 1
        const mark = `1.${sent}`
        await until(
          'the last event',
          () => {
            if (hub.status.realtime !== 'connected') return true
            if (hub.apps.all.get('b')?.version === mark) return true
            gateway.sendText(`${EVENT}{"id":"b","version":"${mark}"}]`)
            return false
          },
          60_000,
        )
        emulated.forgetRequests()
      },
      [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
    }
  },
}

const icons: Entry<Buffer> = {
  name: 'hub: icons',
  batch: 1,
  input: (random) => Buffer.from(random.pick(['', '\ufeff', '<?xml ?>']) + nasty(random, 256 * KiB)),
  open() {
    return { feed: ([body = Buffer.alloc(0)]) => void typeOf(body), ...nothing }
  },
}

const TOKEN = 'token-of-the-fuzzer'
const PATHS = [
  '',
  'api/session',
  'api/login',
  'api/state',
  'api/commands/',
  'api/hubs/home/apps/',
  'api/config',
  'metrics',
  'api/live',
]
const HEADERS = 'host cookie authorization accept-encoding x-forwarded-for forwarded origin content-type'.split(' ')
const line = (text: string) => text.replace(/[\r\n\0]/g, '')
const http: Entry<string> = {
  name: 'HTTP: paths, headers and bodies',
  batch: 8,
  input: (random) => {
    const path = `/${random.pick(PATHS)}${random.chance(0.4) ? line(nasty(random, 7 * KiB)).replaceAll(' ', '%20') : ''}`
    const name = random.pick(HEADERS)
    const odd = random.chance(0.5)
      ? { [name]: `${random.pick(['', 'Bearer ', '127.0.0.1, '])}${line(nasty(random, 7 * KiB))}` }
      : {}
    const body = random.chance(0.4) ? random.pick([nastyJson, nasty])(random, 65 * KiB) : ''
    const headers = {
      host: '127.0.0.1',
      authorization: `Bearer ${TOKEN}`,
      ...(body !== '' && { 'content-type': 'application/json', 'content-length': `${Buffer.byteLength(body)}` }),
      connection: 'close',
      ...odd,
    }
    const method = random.pick(['GET', 'GET', 'POST', 'POST', 'HEAD', 'PUT'])
    const lines = Object.entries(headers).map(([key, value]) => `${key}: ${value}`)
    return `${[`${method} ${path} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n${body}`
  },
  async open() {
    const port = await freePort()
    const env = {
      HTTP_ENABLED: 'true',
      HTTP_PORT: String(port),
      HTTP_TOKENS: `{"fuzz":{"token":"${TOKEN}","access":"full"}}`,
    }
    const world = await World.start({ env, hub: { apps: [{ id: 'a' }] } })
    const ask = (text: string) =>
      new Promise<void>((resolve) => {
        const socket = connect(port, '127.0.0.1', () => socket.end(text))
        socket
          .on('error', () => undefined)
          .on('close', () => resolve())
          .resume()
      })
    return {
      async feed(inputs) {
        await Promise.all(inputs.map(ask))
        world.bridge.lines.length = 0
        world.observer.seen.length = 0
      },
      [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
    }
  },
}

const OPTIONS = 'mqtt.url mqtt.base_topic hub.url apps.include guard.schedule updates.policy http.tokens'.split(' ')
const config: Entry<string> = {
  name: 'configuration files',
  batch: 1,
  input: (random) => {
    const max = 16 * KiB
    const [part = '', option = ''] = random.pick(OPTIONS).split('.')
    return random.pick([
      () => nasty(random, max),
      () => `${part}:\n  ${option}: ${nastyJson(random, max)}\n`,
      () => `${part}:\n  ${option}: ${nasty(random, max)}\n`,
      () =>
        `hubs:\n  home: { url: "http://127.0.0.1", api_key: k }\n${part}: { ${option}: [${nastyJson(random, max)}] }\n`,
      () => `${nasty(random, max)}: ${nasty(random, max)}\n`,
    ])()
  },
  open() {
    return {
      feed([text = '']) {
        try {
          loadConfig({ env: {}, file: 'fuzz.yaml', readFile: () => text })
        } catch (error) {
          if (!(error instanceof ConfigError)) throw error
        }
      },
      ...nothing,
    }
  },
}

const nats: Entry<{ readonly key: string; readonly value: string }> = {
  name: 'NATS: rows',
  batch: 1,
  input: (random) => {
    const max = MiB
    const text = nasty(random, max)
    const value = random.pick([
      () => text,
      () => nastyJson(random, max),
      () => `{"epoch":1,"settled":true,"members":${nastyJson(random, max)}}`,
      () => `{"nonce":${JSON.stringify(text)},"adopted":1}`,
    ])()
    return { key: random.pick(['roster', 'member.a', `member.${nasty(random, 4 * KiB)}`]), value }
  },
  first: largest(MiB).map((value) => ({ key: 'roster', value })),
  open() {
    const unused = () => Promise.reject(new Error('nothing is written or read'))
    const rows = new Rows({ create: unused, update: unused, get: unused }, systemClock)
    let revision = 0
    return {
      feed(inputs) {
        for (const { key, value } of inputs) {
          revision += 1
          rows.saw(key, { value, revision })
          for (const [name, listed] of Object.entries(rows.roster?.record.members ?? {})) rows.hasStopped(name, listed)
          rows.highestEpoch
        }
      },
      ...nothing,
    }
  },
}

export const ENTRIES = [fuzzed(rest), fuzzed(realtime), fuzzed(icons), fuzzed(http), fuzzed(config), fuzzed(nats)]
