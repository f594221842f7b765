/** The table of routes, which the router, the access checks, the OpenAPI document and the documentation use. */
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import * as v from 'valibot'
import { readJson } from '../../../base/read-json.ts'
import { ROOT } from '../../../base/root.ts'
import { describeConfig, secretsOf } from '../../../config/describe.ts'
import type { Live } from '../../../config/options.ts'
import { HISTORY_HOURS, USAGE_HISTORY } from '../../../contract/crash.ts'
import { HubError } from '../../../hub/errors.ts'
import { type AccessControl, type Caller, type Needed, tooMany } from '../access.ts'
import type { Page } from '../page.ts'
import { json, type Reply, refuse } from '../reply.ts'
import type { Sender } from '../sender.ts'
import type { HttpOptions } from '../server.ts'
import type { Setup } from '../setup/setup.ts'
import { COMMAND_ANSWERS, type CommandContext, runCommand } from './command.ts'
import type { Feed } from './feed.ts'
import type { Icons } from './icons.ts'
import * as protocol from './protocol.ts'

/** The objects that routes use. Routes reach the hub only through the bridge's commands and topics. */
export interface AppContext extends CommandContext {
  readonly access: AccessControl
  readonly feed: Feed
  readonly icons: Icons
  readonly logLines: (after: string) => protocol.LogLines
  readonly page: Pick<Page, 'answer'>
  readonly log: HttpOptions['log']
  readonly live: Live
  readonly path: string | null
  readonly version: string
  /** The setup by browser; set only while no hub is configured. */
  readonly setup?: Setup | undefined
}

export interface ApiRequest {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly sender: Sender
  readonly caller: Caller
  /** The decoded values of the `{parameters}` in the path. */
  readonly parameters: Readonly<Record<string, string>>
  /** The value of a `{parameter…}` at the end of the path, percent-encoded as the client sent it. */
  readonly rest: string
  readonly body: Buffer
  readonly isJson: boolean
}

interface Answer {
  readonly doc: string
  /** The schema of a JSON body; missing if the body has another type or is empty. */
  readonly schema?: v.GenericSchema
  readonly type?: string
}

export interface Route {
  readonly method: 'GET' | 'POST'
  /** The path, relative to the listener's address or to a proxy's prefix. `{name…}` at the end matches the rest. */
  readonly path: string
  readonly access: Needed
  /** Set if the option `http.public_url` makes the route public, even for pages of other origins. */
  readonly shown?: true
  readonly doc: string
  readonly query?: Readonly<Record<string, string>>
  readonly request?: v.GenericSchema
  /** The documented answers by status, except those that every route may return. */
  readonly answers: Readonly<Record<number, Answer>>
  /** Set if the OpenAPI document lists one operation for each command instead of this route. */
  readonly commands?: true
  readonly run: (context: AppContext, request: ApiRequest) => Reply | Promise<Reply>
}

/** Headers of icons. They prevent scripts in an SVG that is opened directly. The cache expires, as icons may change. */
const ICON = { 'content-security-policy': "default-src 'none'; sandbox", 'cache-control': 'private, max-age=3600' }

const LOGIN = v.strictObject({ password: v.pipe(v.string(), v.maxLength(4096)) })

/** The OpenAPI document, which has the same path in a checkout and in the package. */
const OPENAPI = new URL('config/openapi.json', ROOT)

function noneIfHubFailed(error: unknown): undefined {
  if (!(error instanceof HubError)) throw error
}

const cookie = (set: string): Reply => ({ status: 204, body: '', headers: { 'set-cookie': set } })

const refused = (doc: string): Answer => ({ doc, schema: protocol.API_ERROR })

const SET_UP: Route['answers'] = {
  400: refused('The values are not a valid configuration.'),
  404: refused('A hub is already configured.'),
  409: refused('The setup is already finished, a variable overrides a value, or the embedded broker cannot start.'),
  429: refused('Too many tests; `Retry-After` has the time to wait.'),
}

async function withSetup({ setup }: AppContext, act: (setup: Setup) => Promise<object>): Promise<Reply> {
  if (setup !== undefined) return json(200, await act(setup))
  return refuse(404, 'unknown_path', 'hub2mqtt is already set up, or its configuration has an empty list of hubs.')
}

interface SetupStep<S extends v.GenericSchema> extends Pick<Route, 'path' | 'doc'> {
  readonly request: S
  readonly answer: Answer
  readonly act: (setup: Setup, given: v.InferOutput<S>, request: ApiRequest) => Promise<object>
}

function setupStep<S extends v.GenericSchema>({ path, doc, request, answer, act }: SetupStep<S>): Route {
  const answers = { 200: answer, ...SET_UP }
  const run: Route['run'] = (context, apiRequest) => {
    const given = readJson(request, apiRequest.body.toString())
    if (given === undefined) return refuse(400, 'invalid', 'Expected the fields that the documentation names.')
    return withSetup(context, (setup) => act(setup, given, apiRequest))
  }
  return post(path, 'full', { doc, request, answers, run })
}

const reports = new WeakMap<AppContext, Promise<string>>()

function doctorReport(context: AppContext): Promise<string> {
  const report = reports.get(context) ?? examineNow(context).finally(() => reports.delete(context))
  reports.set(context, report)
  return report
}

async function examineNow({ live: { value: config }, version, clock }: AppContext): Promise<string> {
  const { examine, lineOf, reportOf } = await import('../../../cli/doctor/doctor.ts')
  const findings = await Array.fromAsync(examine({ config, secrets: secretsOf(config), warnings: [], clock }))
  return `${findings.map(lineOf).join('\n')}\n\nFor a bug report:\n\n${reportOf(findings, config, version)}`
}

type Row = Omit<Route, 'method' | 'path' | 'access'>
const get = (path: string, access: Needed, row: Row): Route => ({ method: 'GET', path, access, ...row })
const post = (path: string, access: Needed, row: Row): Route => ({ method: 'POST', path, access, ...row })

export const ROUTES: readonly Route[] = [
  get('api/session', 'open', {
    doc: 'The access of the client, and how to log in.',
    answers: { 200: { doc: "The client's session.", schema: protocol.SESSION } },
    run({ access, topics, version, setup }, { caller }) {
      const session: protocol.Session = {
        access: caller.access,
        login: access.loginBy,
        version,
        base_topic: topics.base,
        member: topics.member,
        setup: setup !== undefined,
      }
      return json(200, session)
    },
  }),
  post('api/login', 'open', {
    doc: 'Logs a browser in. The answer sets a cookie.',
    request: LOGIN,
    answers: {
      204: { doc: 'Logged in.' },
      401: refused('Wrong password.'),
      429: refused('Too many attempts; `Retry-After` has the time to wait.'),
    },
    async run({ access }, { sender, body }) {
      const given = readJson(LOGIN, body.toString())
      if (given === undefined) return refuse(400, 'invalid', 'Expected {"password": "…"}.')
      const login = await access.login(given.password, sender)
      if (login === undefined) return refuse(401, 'password', 'The password is not correct.')
      return 'cookie' in login ? cookie(login.cookie) : tooMany(login.waitMs)
    },
  }),
  post('api/logout', 'open', {
    doc: 'Ends the session of a browser.',
    answers: { 204: { doc: 'Logged out.' } },
    run: ({ access }, { incoming, sender }) => cookie(access.logout(incoming, sender)),
  }),
  get('api/live', 'local', {
    doc: 'A WebSocket: a snapshot, then changes, events and answers, one JSON text per message.',
    answers: {
      101: { doc: 'Frames of this form follow.', schema: protocol.LIVE_FRAME },
      503: refused('Too many clients are connected.'),
    },
    // The listener handles WebSockets, so only requests without an upgrade arrive here.
    run: () => refuse(426, 'websocket', 'Expected a WebSocket.', { upgrade: 'websocket' }),
  }),
  get('api/state', 'local', {
    doc: 'All retained messages of the bridge; in a fleet also the states of other members and their hubs.',
    answers: { 200: { doc: 'Topic → payload.', schema: protocol.STATE } },
    run: ({ feed }, { caller }) => json(200, Object.fromEntries(feed.state(caller.access !== 'local'))),
  }),
  post('api/commands/{topic…}', 'full', {
    doc: 'Sends a command. The path ends with the topic of the command, without the base topic and `cmd`; the body is the payload.',
    answers: COMMAND_ANSWERS,
    commands: true,
    run: runCommand,
  }),
  get('api/hubs/{hub}/apps/{app}/icon', 'local', {
    shown: true,
    doc: 'The icon of an app from the hub; needs no login if `http.public_url` is set.',
    answers: { 200: { doc: 'PNG, JPEG, WebP or SVG.', type: 'image/*' }, 404: refused('No icon.') },
    async run({ icons }, { parameters: { hub = '', app = '' } }) {
      const icon = await icons.get(hub, app).catch(noneIfHubFailed)
      return icon === undefined ? refuse(404, 'no_icon', 'There is no icon.') : { status: 200, ...icon, headers: ICON }
    },
  }),
  get('api/hubs/{hub}/apps/{app}/history/{hours}', 'local', {
    doc: 'CPU and memory of an app in the last 1 to 168 hours, as the bridge recorded them, in the format of `get-history`; empty for an unknown app.',
    answers: { 200: { doc: 'The history.', schema: USAGE_HISTORY }, 400: refused('Hours out of range.') },
    run({ bridge }, { parameters: { hub = '', app = '', hours = '' } }) {
      const wanted = v.safeParse(HISTORY_HOURS, Number(hours))
      if (!wanted.success) return refuse(400, 'invalid', 'Expected 1 to 168 hours.')
      return json(200, bridge.evidence.history(hub, app, wanted.output))
    },
  }),
  get('api/config', 'read', {
    doc: 'The current configuration, with secrets masked.',
    answers: { 200: { doc: 'The configuration in the format of a file.', schema: protocol.CONFIG_REPORT } },
    run: ({ live, path }) => json(200, { text: describeConfig(live.value), path } satisfies protocol.ConfigReport),
  }),
  get('api/log', 'full', {
    doc: 'The latest 2,000 lines of the log; with `?after=` and the value of `next` in an earlier answer, the lines that follow.',
    query: { after: '`next` of the previous answer.' },
    answers: { 200: { doc: 'The lines, and the level of the log.', schema: protocol.LOG_LINES } },
    run({ logLines }, { incoming }) {
      return json(200, logLines(new URLSearchParams(incoming.url?.split('?')[1]).get('after') ?? ''))
    },
  }),
  get('api/doctor', 'full', {
    doc: 'Tests the hubs and the broker as `hub2mqtt doctor` does, which takes a while.',
    answers: { 200: { doc: 'The result.', schema: protocol.DOCTOR_REPORT } },
    run: async (context) => json(200, { text: await doctorReport(context) } satisfies protocol.DoctorReport),
  }),
  get('api/setup', 'full', {
    doc: 'While no hub is configured: the initial data of the setup page. Searches for hubs for up to three seconds.',
    answers: { 200: { doc: 'The file, the broker and the hubs found.', schema: protocol.SETUP }, ...SET_UP },
    run: (context) => withSetup(context, (setup) => setup.read()),
  }),
  setupStep({
    path: 'api/setup/test-hub',
    doc: 'While no hub is configured: tests a hub as `hub2mqtt doctor` does. Limited to one test at a time, and 20 tests a minute.',
    request: protocol.SETUP_HUB,
    answer: { doc: 'The result.', schema: protocol.SETUP_TEST },
    act: (setup, hub) => setup.testHub(hub),
  }),
  setupStep({
    path: 'api/setup/test-broker',
    doc: 'While no hub is configured: tests a broker in the same way.',
    request: protocol.SETUP_BROKER,
    answer: { doc: 'The result.', schema: protocol.SETUP_TEST },
    act: (setup, broker) => setup.testBroker(broker),
  }),
  setupStep({
    path: 'api/setup/apply',
    doc: 'While no hub is configured: writes the configuration file and starts the bridge, or returns the lines to add.',
    request: protocol.SETUP_APPLY,
    answer: { doc: 'The written file, or the lines to add.', schema: protocol.SETUP_DONE },
    async act(setup, wanted, { outgoing }) {
      const done = await setup.apply(wanted)
      const start = () => setup.answered()
      if (outgoing.destroyed) start()
      else outgoing.once('close', start)
      return done
    },
  }),
  get('api/openapi.json', 'open', {
    doc: 'This API as an OpenAPI document.',
    answers: { 200: { doc: 'OpenAPI 3.1.' } },
    run: async () => ({ status: 200, body: await readFile(OPENAPI) }),
  }),
]
