/** Gateways and captive portals at the hub's address, and hubs that are not ready or do not identify themselves. */
import { setTimeout as after } from 'node:timers/promises'
import { isRecord } from '../../../src/base/json.ts'
import { type GatewayRequest, HttpGateway, type Reply, type Rule, type Verdict } from '../../support/http-gateway.ts'
import { parse } from '../answers.ts'
import { hubTopic, read } from '../commands.ts'
import { type Fault, type Faults, kindOf, type Scene } from './fault.ts'

export const page = (status: number): Reply => ({
  status,
  headers: { 'content-type': 'text/html' },
  text: `<!doctype html><html><head><title>${status}</title></head><body>Something else answers here.</body></html>`,
})

export const json = (value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Reply => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  text: JSON.stringify(value),
})

export const isList = ({ method, path }: GatewayRequest) =>
  method === 'GET' && /\/managers?\/apps\/app\/?(\?|$)/.test(path)
const isPing = ({ path }: GatewayRequest) => path.includes('/system/ping')
const isRest = ({ upgrade }: GatewayRequest) => !upgrade
const isWrite = ({ method, upgrade }: GatewayRequest) => method !== 'GET' && !upgrade

/** Returns a verdict that changes answers with status 200 that are JSON objects. Other answers stay unchanged. */
export function altered(change: (value: Record<string, unknown>) => unknown): Verdict {
  return {
    change(answer) {
      const value = parse(answer.text)
      return isRecord(value) && answer.status === 200 ? { ...answer, text: JSON.stringify(change(value)) } : answer
    },
  }
}

interface DuringOptions {
  readonly times?: (scene: Scene) => number
  readonly ms?: readonly [number, number]
}

/** Applies a rule for some time, or to some requests within that time. */
export function during(
  rule: (scene: Scene) => Rule,
  { times, ms: [min, max] = [800, 4000] }: DuringOptions = {},
): Fault['run'] {
  return async (scene) => {
    const { world, random } = scene
    const apply = rule(scene)
    let left = times?.(scene) ?? Number.POSITIVE_INFINITY
    const end = world.gateway.rule((request) => {
      const verdict = left > 0 ? apply(request) : undefined
      if (verdict !== undefined) left -= 1
      return verdict
    })
    await after(random.int(min, max))
    end()
  }
}

const gateway = kindOf({})

export const lists = (change: (list: Record<string, unknown>, scene: Scene) => unknown, options?: DuringOptions) =>
  during((scene) => (request) => (isList(request) ? altered((list) => change(list, scene)) : undefined), options)

const allOrSome = { times: ({ random }: Scene) => (random.chance(0.5) ? Number.POSITIVE_INFINITY : random.int(1, 8)) }
const once = { times: () => 1 }

const answering = (answer: Reply) =>
  during(({ random }) => {
    const concerns = random.chance(0.5) ? () => true : (request: GatewayRequest) => isRest(request) && isList(request)
    return (request) => (concerns(request) ? answer : undefined)
  }, allOrSome)

/** Makes the bridge request the hub's identity, because each refresh begins with this request. */
async function refresh({ load, random }: Scene): Promise<void> {
  for (let left = 2; left > 0; left -= 1) {
    await after(random.int(50, 400))
    await load.issue(read(hubTopic('refresh')))
  }
}

/** Answers to writes that gateways and captive portals send in place of the hub. */
const IN_PLACE: readonly Reply[] = [
  { status: 204, headers: {}, text: '' },
  ...[null, {}, true, { ok: true }].map((value) => json(value)),
  page(200),
  { ...page(200), text: '' },
]

/** Unusual answers with which a hub reports success. */
const ODD = [
  '',
  'OK',
  '"OK"',
  '1',
  '0',
  '[]',
  '{}',
  '[true]',
  '{"ok":true}',
  '{"result":{}}',
  '\ufeffnull',
  '<p>done</p>',
]

const tooMany = (headers: Readonly<Record<string, string>> = {}) => json({ error: 'too_many_requests' }, 429, headers)

function without(headers: Reply['headers'], ...names: readonly string[]): Reply['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)))
}

export const GATEWAY_FAULTS: Faults = {
  'gateway answers 404 pages': gateway(answering(page(404))),
  'gateway answers 503 pages': gateway(answering(page(503))),
  'portal answers its own page': gateway(answering(page(200))),
  'portal redirects to its login': gateway(async (scene) => {
    const { world } = scene
    await using elsewhere = await HttpGateway.to(world.hub.port)
    elsewhere.rule(({ path, headers }) => {
      if (headers.authorization !== undefined)
        world.watch.object('key shown', `the redirected request to ${path} had the key`)
      return page(200)
    })
    const location = `http://127.0.0.1:${elsewhere.port}/login`
    await during(() => () => ({ ...page(302), headers: { location } }), allOrSome)(scene)
  }),
  'hub reports that it is starting up': gateway(answering(json({ error: 'starting up' }))),
  'hub answers an object as error': gateway(answering(json({ error: { code: 503, message: 'starting up' } }))),
  'half a list once': gateway(
    lists((list, { random }) => {
      const entries = Object.entries(list)
      return Object.fromEntries(entries.slice(0, random.int(1, Math.floor(entries.length * 0.4))))
    }, once),
    { staysOnline: true, holds: ['list'] },
  ),
  'an app missing from every other list': gateway(
    during(({ random }) => {
      let lists = 0
      return (request) => {
        if (!isList(request)) return undefined
        lists += 1
        if (lists % 2 === 0) return undefined
        return altered((list) => {
          const entries = Object.entries(list)
          const missing = random.int(0, entries.length - 1)
          return Object.fromEntries(entries.filter((_, index) => index !== missing))
        })
      }
    }),
    { staysOnline: true, holds: ['list'] },
  ),
  'list of another hub once': gateway(
    lists((list, { random }) => {
      const others = Object.values(list).map((record, index) => {
        const id = `com.elsewhere.app${index}`
        return [id, { ...Object(record), id }] as const
      })
      return Object.fromEntries(others.slice(random.int(0, 3)))
    }, once),
    { holds: ['list'] },
  ),
  'list with another id in a record': gateway(
    lists((list, { random }) => {
      const all = random.chance(0.5)
      const renamed = Object.entries(list).map(([id, record], index) => {
        const changes = isRecord(record) && (all || index === 0)
        return [id, changes ? { ...record, id: `${id}.other` } : record] as const
      })
      return Object.fromEntries(renamed)
    }),
  ),
  'hub does not identify itself': gateway((scene) => {
    const nameless = during(({ random }) => {
      const everywhere = random.chance(0.5)
      return (request) =>
        isRest(request) && (everywhere || isPing(request))
          ? { change: (answer) => ({ ...answer, headers: without(answer.headers, 'x-homey-id', 'x-homey-version') }) }
          : undefined
    })
    return Promise.all([nameless(scene), refresh(scene)]).then(() => undefined)
  }),
  'hub shows another identity for a moment': gateway(async (scene) => {
    scene.world.watch.identityChanged = true
    const rule: Rule = (request) =>
      isPing(request)
        ? { change: (answer) => ({ ...answer, headers: { ...answer.headers, 'x-homey-id': 'somebody-else' } }) }
        : undefined
    await during(() => rule, { times: ({ random }) => random.int(1, 2) })(scene)
  }),
  'hub answers 429 without a time': gateway(
    during(() => (request) => (isRest(request) ? tooMany() : undefined), { times: ({ random }) => random.int(1, 12) }),
    { staysOnline: true },
  ),
  'hub accepts four requests at a time': gateway(
    during(
      ({ random }) => {
        const headers = random.chance(0.5) ? { 'retry-after': '1' } : {}
        let accepted: number[] = []
        return (request) => {
          const now = performance.now()
          accepted = accepted.filter((at) => now - at < 500)
          if (!isRest(request)) return undefined
          if (accepted.length >= 4) return tooMany(headers)
          accepted.push(now)
          return undefined
        }
      },
      { ms: [2000, 5000] },
    ),
    { staysOnline: true },
  ),
  'hub lacks methods': gateway(
    during(({ random }) => {
      const lacking = random.pick(['/gc', '/say', '/voice', '/crashlog', '/session/me'] as const)
      return ({ path }) => (path.includes(lacking) ? json({ error: 'missing_api_method' }, 500) : undefined)
    }),
  ),
  'gateway answers lists in place of the hub': gateway(
    during(
      ({ random }) =>
        (request) =>
          isList(request) ? random.pick([json({}), json(null), json([]), json({}, 404)]) : undefined,
      { ms: [2000, 8000] },
    ),
    { holds: ['list'] },
  ),
  'gateway answers writes in place of the hub': gateway(
    during(
      ({ random }) =>
        (request) => {
          if (!isWrite(request)) return undefined
          const reply = random.pick(IN_PLACE)
          return random.chance(0.5) ? reply : { change: () => reply }
        },
      { ms: [2000, 5000] },
    ),
  ),
  'hub answers writes oddly': gateway(
    during(
      ({ random }) =>
        (request) =>
          isWrite(request)
            ? {
                change: (answer) => (answer.status < 300 ? { ...answer, status: 200, text: random.pick(ODD) } : answer),
              }
            : undefined,
      { ms: [2000, 5000] },
    ),
    { staysOnline: true, holds: ['answers'] },
  ),
  'another server at the address': gateway(
    async (scene) => {
      const { world, random } = scene
      // Keep the hub unreachable long enough for the bridge to notice it.
      world.hubProxy.cut()
      await after(3500)
      const since = Date.now()
      const answers = random.pick([page(200), json({ login: 'required' }), json(true), page(404)])
      const lets = random.chance(0.5)
      const end = world.gateway.rule(({ path, headers, upgrade }) => {
        if (headers.authorization !== undefined) world.watch.object('key shown', `to a stranger: ${path}`)
        return upgrade && lets ? undefined : answers
      })
      world.hubProxy.heal()
      await after(random.int(4000, 7000))
      const shown = world.hub.requests.some(({ at, path, key }) => at > since && path === 'handshakeClient' && key)
      if (shown) world.watch.object('key shown', 'in a handshake, before the answer of a hub')
      end()
    },
    { agreeMs: 40_000, alone: true },
  ),
}
