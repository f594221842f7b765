/** The control port: HTTP on the loopback interface, for programs on the same machine. Each endpoint is one row. */
import { createServer, type IncomingMessage } from 'node:http'
import * as v from 'valibot'
import { isAllowedHost } from '../base/hosts.ts'
import { isRecord, parseJson } from '../base/json.ts'
import { isUp } from './apps.ts'
import { described, type Endpoint, type Input, optional, type Request, requestOf } from './core/endpoint.ts'
import { JSON_TYPE } from './faults.ts'
import type { AppRecord, EmulatedHub } from './hub.ts'
import { asHubError, HubError } from './hub-error.ts'
import { HeaderText } from './hub-file.ts'
import { listeningPort } from './listening-port.ts'
import { BEHAVIOURS, isBehaviour } from './misbehaviour.ts'
import { urlOf } from './options.ts'
import { fill, readBody, split } from './rest.ts'
import { EmulatorOptionError } from './scopes.ts'

interface ControlRow extends Pick<Endpoint, 'doc' | 'method' | 'path'> {
  readonly accepts: v.ObjectEntries
  /** Runs the endpoint. `args` contains the parameters of the path and the fields of the body. @throws HubError */
  perform(hub: EmulatedHub, args: Readonly<Record<string, unknown>>): unknown
}

interface Row<R extends Request, E extends v.ObjectEntries> {
  readonly accepts?: E
  run(hub: EmulatedHub, input: Input<R, E>): unknown
}

// biome-ignore lint/complexity/noBannedTypes: a row without `accepts` adds `{}` to the parameters of its path.
function row<const R extends Request, const E extends v.ObjectEntries = {}>(
  request: R,
  doc: string,
  row: Row<R, E>,
): ControlRow
function row(request: Request, doc: string, { accepts = {}, run }: Row<Request, v.ObjectEntries>): ControlRow {
  const { read, ...route } = requestOf(request, accepts)
  return { doc, accepts, ...route, perform: (hub, args) => run(hub, read(args)) }
}

/** Accepts any object as the body of a request, and passes the whole body as `options`. */
const OPTIONS = { options: v.record(v.string(), v.unknown()) }
const whole = v.pipe(v.number(), v.integer(), v.minValue(0))

function behaviourNamed(name: string) {
  if (isBehaviour(name)) return name
  throw new HubError(404, 'not_found', `There is no behaviour ${name}`)
}

function installed(hub: EmulatedHub, id: string): AppRecord {
  const app = hub.apps.get(id)
  if (app === undefined) throw new HubError(404, 'not_found', 'App Not Found')
  return app
}

/** Validates the options of a behaviour and sets it. @throws HubError 400, 404 */
function behave(hub: EmulatedHub, name: string, options: unknown): void {
  const parsed = v.safeParse(BEHAVIOURS[behaviourNamed(name)].options, options)
  if (!parsed.success) {
    const [issue] = parsed.issues
    throw new HubError(400, 'invalid_parameter', `${v.getDotPath(issue) ?? 'the options'}: ${issue.message}`)
  }
  hub.behave(behaviourNamed(name), parsed.output)
}

export const CONTROL: readonly ControlRow[] = [
  row('GET /behaviours', 'The active behaviours, and how many more times each will happen.', {
    run: (hub) => hub.behaviours,
  }),
  row('PUT /behaviours/:name', 'Sets a behaviour. The body contains its options.', {
    accepts: OPTIONS,
    run: (hub, { name, options }) => behave(hub, name, options),
  }),
  row('DELETE /behaviours/:name', 'Clears all variants of a behaviour.', {
    run: (hub, { name }) => hub.behave(behaviourNamed(name), false),
  }),
  row('DELETE /behaviours', 'Clears all behaviours.', { run: (hub) => hub.behaveWell() }),
  row('GET /requests', 'The latest requests to the hub, oldest first, without keys.', {
    run: (hub) => hub.requests.map(({ key: _, ...request }) => request),
  }),
  row('DELETE /requests', 'Clears the list of requests.', { run: (hub) => hub.forgetRequests() }),
  row('GET /spoken', 'The latest spoken texts, oldest first.', { run: (hub) => hub.spoken }),
  row(
    'GET /connections',
    'The number of connections, of realtime sessions, and of sessions that are subscribed to the apps.',
    { run: (hub) => hub.connections },
  ),
  row('POST /apps/:id/crash', 'Makes an app crash. A simulated app crashes with the given message.', {
    accepts: { message: optional(v.string(), 'The message of the crash.') },
    run: (hub, { id, message }) => {
      if (!isUp(installed(hub, id).state)) throw new HubError(503, 'not_running', 'The app is not running')
      return hub.provokeCrash(id, message)
    },
  }),
  row('PUT /apps/:id/devices', "Makes an app's devices unavailable, or available again.", {
    accepts: { state: described(v.picklist(['away', 'back']), '`away`: unavailable; `back`: available.') },
    run: (hub, { id, state }) => hub.setDevices(installed(hub, id).id, state),
  }),
  row('POST /realtime/drop', 'Ends all realtime sessions.', {
    accepts: {
      how: optional(
        v.picklist(['goodbye', 'cut']),
        '`goodbye`, the default, closes the sessions; `cut` drops the connections.',
      ),
    },
    run: (hub, { how }) => hub.dropRealtime(how),
  }),
  row('POST /reboot', 'Reboots the hub; answers when it is back.', {
    accepts: {
      downMs: optional(v.pipe(whole, v.maxValue(3_600_000)), 'How long the hub is down, in milliseconds; default 0.'),
      version: optional(HeaderText, 'The firmware after the reboot.'),
      id: optional(HeaderText, 'The id of the hub after the reboot.'),
    },
    run: (hub, options) => hub.reboot(options),
  }),
]

const HOST = '127.0.0.1'

/** Opens the control port; 0 selects any free port. @throws EmulatorOptionError if the port cannot be opened */
export async function openControl(hub: EmulatedHub, port: number) {
  const server = createServer(async (request, response) => {
    response.on('error', () => {})
    const { status, value } = await answer(hub, request)
    response.writeHead(status, JSON_TYPE).end(`${JSON.stringify(value)}\n`)
  })
  const listening = listeningPort(server, HOST)
  const bound = await listening.listen(port).catch((cause: unknown) => {
    throw new EmulatorOptionError(`cannot open the control port ${port}; is it in use?`, { cause })
  })
  return { url: urlOf(HOST, bound), [Symbol.asyncDispose]: listening.close }
}

async function answer(hub: EmulatedHub, request: IncomingMessage): Promise<{ status: number; value: unknown }> {
  try {
    refuseWebPages(request)
    return { status: 200, value: (await perform(hub, request)) ?? null }
  } catch (thrown) {
    const refusal = asHubError(thrown)
    return { status: refusal.status, value: refusal.body() }
  }
}

/** Refuses requests from web pages, because there is no login and a page's host name may resolve to loopback. */
function refuseWebPages({ headers }: IncomingMessage): void {
  if (!isAllowedHost(headers.host, [])) throw new HubError(421, 'misdirected', 'Use an IP address or localhost')
  if (headers.origin !== undefined) throw new HubError(403, 'forbidden', 'Not for web pages')
}

async function perform(hub: EmulatedHub, request: IncomingMessage): Promise<unknown> {
  const { method, url = '' } = request
  const segments = split(url.split('?')[0] ?? '')
  for (const row of CONTROL) {
    const params = row.method === method ? fill(split(row.path), segments) : undefined
    if (params === undefined) continue
    const body = await bodyOf(request)
    return await row.perform(hub, 'options' in row.accepts ? { options: body, ...params } : { ...body, ...params })
  }
  throw new HubError(404, 'not_found', 'Not Found')
}

/** Reads the body of a request; an empty object if there is none. @throws HubError 400 if invalid, 413 if too large */
async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const upload = await readBody(request)
  if (upload instanceof HubError) throw upload
  const value = upload.trim() === '' ? {} : parseJson(upload)
  if (!isRecord(value)) throw new HubError(400, 'invalid_body', 'The body must be a JSON object')
  return value
}
