import type { OperationName } from '../../../src/emulator/core/table.ts'
import type { EmulatedHub, EmulatedHubOptions } from '../../../src/emulator/hub.ts'
import type { BehaviourName, BehaviourOptions } from '../../../src/emulator/misbehaviour.ts'
import type { GatewayRequest, HttpGateway, Reply } from '../../support/http-gateway.ts'

export interface Plant {
  /** The options of the hub; default: an older hub. */
  readonly hub?: EmulatedHubOptions
  readonly misbehave?: (hub: EmulatedHub) => void
  readonly onTheWay?: (gateway: HttpGateway) => void
}

export interface Findings {
  /** The ids of the expectations that the hub does not meet, without expectations that were only inferred. */
  readonly differs?: readonly string[]
  /** Operations whose answers differ from the specification. */
  readonly operations?: readonly string[]
  readonly left?: readonly string[]
}

export const APP = 'com.secretmaker.garden'

const isOf =
  (method: string, path: RegExp) =>
  (asking: GatewayRequest): boolean =>
    !asking.upgrade && asking.method === method && path.test(asking.path)

const JSON_TYPE = { 'content-type': 'application/json', 'x-homey-id': 'of-the-hub', 'x-homey-version': '8.1.6' }
const json = (status: number, value: unknown): Reply => ({ status, headers: JSON_TYPE, text: JSON.stringify(value) })

const answers = (fits: (asking: GatewayRequest) => boolean, reply: Reply): Plant => ({
  onTheWay: (gateway) => gateway.rule((asking) => (fits(asking) ? reply : undefined)),
})

const changes = (fits: (asking: GatewayRequest) => boolean, change: (answer: Reply) => Partial<Reply>): Plant => ({
  onTheWay: (gateway) =>
    gateway.rule((asking) => (fits(asking) ? { change: (answer) => ({ ...answer, ...change(answer) }) } : undefined)),
})

const withRecord = (record: Record<string, unknown>, flavour: 'older' | 'newer' = 'older'): EmulatedHubOptions => ({
  flavour,
  apps: [
    { id: APP, version: '2.1.0', settings: { a: 1 }, record },
    { id: 'com.other.app', enabled: false },
  ],
})

const GET_APP = isOf('GET', /\/apps\/app\/[^/]+$/)
const WRITE = (asking: GatewayRequest) =>
  !asking.upgrade && asking.method !== 'GET' && !asking.path.includes('/setting/')

const behaves =
  <N extends BehaviourName>(name: N, options?: BehaviourOptions[N]) =>
  (hub: EmulatedHub): void =>
    hub.behave(name, options)

const pretends = (operation: OperationName): Plant => ({ misbehave: behaves('pretend', { operation }) })
const answersWith = (operation: OperationName, value: unknown): Plant => ({
  misbehave: behaves('wrong-shape', { operation, value }),
})

/** Each entry contains one deviation, and all findings that the report may then contain. */
export const DEVIATIONS: Readonly<Record<string, readonly [Plant, Findings]>> = {
  'removing a setting answers 200 and does nothing': [
    pretends('unsetAppSetting'),
    { differs: ['setting-gone'], left: ['setting hub2mqtt-conformance'] },
  ],
  'a setting is returned as another value': [
    changes(isOf('GET', /\/setting\/hub2mqtt-conformance$/), () => ({ text: '"other"' })),
    { differs: ['setting-kept'] },
  ],
  'updateApp answers 200 and does nothing': [pretends('updateApp'), { differs: ['autoupdate'] }],
  'disableApp answers 200 and does nothing': [pretends('disableApp'), { differs: ['disable'] }],
  'enableApp answers 200 and does nothing': [
    pretends('enableApp'),
    { differs: ['enable'], left: ['enabled', 'state'] },
  ],
  'restartApp is missing': [
    { misbehave: behaves('answer-status', { operation: 'restartApp', status: 404 }) },
    { differs: ['restart'] },
  ],
  'no event is sent': [{ misbehave: behaves('lose-events') }, { differs: ['events'] }],
  'an unknown key is answered with 403': [
    changes(
      ({ headers, upgrade }) => !upgrade && headers.authorization?.includes('no-such-key') === true,
      () => ({ status: 403 }),
    ),
    { differs: ['unknown-key'] },
  ],
  'the list of apps is served without a key': [
    answers(
      ({ headers, upgrade, path }) => !upgrade && headers.authorization === undefined && path.endsWith('/app'),
      json(200, {}),
    ),
    { differs: ['no-key'] },
  ],
  'a ping for another hub is answered with true': [
    changes(isOf('GET', /ping\?id=/), () => ({ text: 'true' })),
    { differs: ['ping-other'] },
  ],
  'the locales are a list': [answersWith('getAppLocales', []), { differs: ['locales'], operations: ['getAppLocales'] }],
  'usage is a text': [{ hub: withRecord({ usage: '40 MB' }) }, { differs: ['field-usage'] }],
  'updateAvailable is a number': [{ hub: withRecord({ updateAvailable: 7 }) }, { differs: ['field-update-available'] }],
  'updateAvailable of an older hub is true': [
    { hub: withRecord({ updateAvailable: true }) },
    { differs: ['field-update-available'] },
  ],
  'updateAvailable of a newer hub is an object': [
    { hub: withRecord({ updateAvailable: { version: '2.2.0' } }, 'newer') },
    { differs: ['field-update-available'] },
  ],
  'a refusal is a page': [
    changes(isOf('GET', /no-such-app$/), () => ({ text: '<html>' })),
    { differs: ['error-body'] },
  ],
  'the apps cannot be subscribed to': [{ misbehave: behaves('refuse-subscription') }, { differs: ['subscribe'] }],
  'the namespace is refused': [{ misbehave: behaves('refuse-namespace') }, { differs: ['subscribe'] }],
  'the namespace is closed immediately': [{ misbehave: behaves('drop-realtime') }, { differs: ['subscribe'] }],
  'the handshake is refused': [{ misbehave: behaves('refuse-handshake') }, { differs: ['handshake'] }],
  'a ping has an id and no version': [
    changes(isOf('GET', /./), ({ headers: { 'x-homey-version': _, ...headers } }) => ({ headers })),
    { differs: ['ping-identity'] },
  ],
  'a refused write is a success': [answersWith('restartApp', { success: false }), { operations: ['restartApp'] }],
}

export const ODD: Readonly<Record<string, Plant>> = {
  'restarts an app without a visible change': pretends('restartApp'),
  'shows no identity': { misbehave: behaves('no-identity') },
  'sends empty answers': { hub: { nothing: 'empty' } },
  'answers 204': { hub: { nothing: '204' } },
  ...Object.fromEntries(
    ['true', '1', '{"ok":true}', '[{"result":null}]', 'done', '"done"'].map((text) => [
      `answers writes with ${text}`,
      changes(WRITE, (answer) => (answer.status === 200 ? { text } : {})),
    ]),
  ),
  'begins its JSON with a byte order mark': changes(isOf('GET', /./), (answer) => ({ text: `\uFEFF${answer.text}` })),
  'is behind a server that answers writes in its place': answers(WRITE, {
    status: 200,
    headers: { 'content-type': 'application/json' },
    text: 'null',
  }),
  'stays ready although its state is stopped': changes(GET_APP, (answer) => ({
    text: answer.text.replace('"ready":false', '"ready":true'),
  })),
  'reports no state': { hub: withRecord({ state: undefined }) },
  'leaves out unknown fields': {
    hub: withRecord({ usage: null, updateAvailable: undefined, exitCount: null, autoupdate: undefined }),
  },
  'leaves the memory out of the usage': { hub: withRecord({ usage: { cpu: 0.1 } }) },
  'has no list of update channels': { hub: withRecord({ channel: undefined }) },
  'takes a while for each change': { hub: { settleMs: 300 } },
  'removes a missing setting with 200': changes(isOf('DELETE', /\/setting\//), () => ({ status: 200, text: 'null' })),
  'knows only one of the paths': { hub: { prefix: 'manager' } },
  'has a fresh firmware': { hub: { flavour: 'newer', version: '13.0.0-rc.1' } },
  'keeps an app from the developer': { hub: withRecord({ origin: 'devkit_run' }) },
  'answers a ping with pong': {
    hub: { flavour: 'reference' },
    ...changes(isOf('GET', /ping$/), () => ({ text: '"pong"' })),
  },
}
