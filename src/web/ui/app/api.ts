import * as v from 'valibot'
import { readJson } from '../../../base/read-json.ts'
import { USAGE_HISTORY } from '../../../contract/crash.ts'
import { encodeLevel } from '../../../contract/templates.ts'
import * as protocol from '../../server/api/protocol.ts'
import { ANSWER, type Answer, read } from './live/payload.ts'
import { defineStrings } from './terms.ts'

const text = defineStrings('api', {
  unreachable: 'hub2mqtt does not answer.',
  unreadable: 'This page does not understand the answer of hub2mqtt. Reload the page.',
  status: 'hub2mqtt or a proxy answered with status {status}.',
  proxy: 'A proxy answered instead of hub2mqtt, with status {status}.',
})

export const apiUrl = (path: string) => new URL(`api/${path}`, document.baseURI)

export type Result<T> =
  | { readonly ok: true; readonly value: T }
  /** A failed request. `status` is 0 if there was no answer. */
  | { readonly ok: false; readonly status: number; readonly message: string }

/** Sends a request to the API. Resolves to `undefined` if there is no answer. */
async function request(path: string, init: RequestInit = {}) {
  try {
    const response = await fetch(apiUrl(path), { cache: 'no-store', ...init })
    return { status: response.status, body: readJson(v.unknown(), await response.text()) }
  } catch {
    return undefined
  }
}

type RawAnswer = Awaited<ReturnType<typeof request>>

function resultOf<S extends v.GenericSchema>(schema: S, response: RawAnswer): Result<v.InferOutput<S>> {
  if (response === undefined) return { ok: false, status: 0, message: text.unreachable }
  const { status, body } = response
  if (status >= 200 && status < 300) {
    const result = v.safeParse(schema, body)
    return result.success ? { ok: true, value: result.output } : { ok: false, status, message: text.unreadable }
  }
  // hub2mqtt gives its API's errors a reason. With these status codes, an answer without one is from a proxy.
  const unexplained = status >= 502 && status <= 504 ? text.proxy : text.status
  return { ok: false, status, message: read(protocol.API_ERROR, body)?.error.message ?? unexplained({ status }) }
}

const get = async <S extends v.GenericSchema>(schema: S, path: string, init?: RequestInit) =>
  resultOf(schema, await request(path, init))
const post = <S extends v.GenericSchema>(schema: S, path: string, body: object) => get(schema, path, sending(body))

/** Returns the options of a request. An empty string is sent as an empty body, without a content type. */
function sending(body: object | string): RequestInit {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return { method: 'POST', ...(text !== '' && { headers: { 'content-type': 'application/json' }, body: text }) }
}

/** Time limit for requests that the daemon answers immediately. A longer wait means a lost connection. */
const PROMPT_MS = 10_000
const promptly = <S extends v.GenericSchema>(schema: S, path: string) =>
  get(schema, path, { signal: AbortSignal.timeout(PROMPT_MS) })

export const api = {
  session: () => promptly(protocol.SESSION, 'session'),
  login: (password: string) => post(v.unknown(), 'login', { password }),
  logout: () => post(v.unknown(), 'logout', {}),
  history: (hub: string, app: string, hours: number) =>
    promptly(USAGE_HISTORY, `hubs/${encodeURIComponent(hub)}/apps/${encodeURIComponent(app)}/history/${hours}`),
  config: () => promptly(protocol.CONFIG_REPORT, 'config'),
  /** Reads new log lines. @param after `next` of the previous answer */
  log: (after: string) => promptly(protocol.LOG_LINES, `log?after=${encodeURIComponent(after)}`),
  doctor: () => get(protocol.DOCTOR_REPORT, 'doctor'),
  setup: () => get(protocol.SETUP, 'setup'),
  testHub: (hub: protocol.SetupHub) => post(protocol.SETUP_TEST, 'setup/test-hub', hub),
  testBroker: (broker: protocol.SetupBroker) => post(protocol.SETUP_TEST, 'setup/test-broker', broker),
  applySetup: (wanted: protocol.SetupApply) => post(protocol.SETUP_DONE, 'setup/apply', wanted),
}

export function iconUrl(hub: string, app: string): string {
  return apiUrl(`hubs/${encodeURIComponent(hub)}/apps/${encodeURIComponent(app)}/icon`).href
}

/** The result of a command. If the error code is `null`, it is unknown whether the command was executed. */
export type Ended =
  | Answer
  | { readonly ok: false; readonly error: { readonly code: string | null; readonly message: string } }

/** The target of a command: an app of a hub, a hub, or, if neither is given, the bridge. */
export type For = { readonly hub?: string; readonly app?: string }

/** Sends a command. Resolves when it has ended. `payload` is the same as over MQTT; an object is sent as JSON. */
export async function sendCommand(target: For, command: string, payload: object | string = ''): Promise<Ended> {
  const { hub = 'bridge', app } = target
  const levels = [hub, ...(app === undefined ? [] : ['app', encodeLevel(app)]), command]
  const response = await request(`commands/${levels.join('/')}`, sending(payload))
  const answer = read(ANSWER, response?.body)
  if (answer !== undefined) return answer
  const result = resultOf(v.never(), response)
  const code = read(protocol.API_ERROR, response?.body)?.error.code ?? null
  return { ok: false, error: { code, message: result.ok ? text.unreadable : result.message } }
}
