/** The HTTP API, below the address that the page was loaded from. */
import * as v from 'valibot'
import { encodeLevel } from '../../../contract/templates.ts'
import {
  API_ERROR,
  CONFIG_REPORT,
  DOCTOR_REPORT,
  SESSION,
  SETUP,
  SETUP_DONE,
  SETUP_TEST,
  type Session,
  type Setup,
  type SetupApply,
  type SetupBroker,
  type SetupDone,
  type SetupHub,
  type SetupTest,
} from '../../server/api/protocol.ts'
import { type Answer, parseJson, readAnswer } from './live/payload.ts'
import { S } from './strings.ts'

export function apiUrl(path: string): URL {
  return new URL(`api/${path}`, document.baseURI)
}

export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly status: number; readonly message: string }

/** What went wrong, where nobody answered: no status. */
const UNREACHABLE = { ok: false, status: 0, message: S.errors.unreachable } as const

interface Asked {
  readonly status: number
  readonly body: unknown
}

/** `undefined` if there was no answer. */
async function ask(path: string, init: RequestInit = {}): Promise<Asked | undefined> {
  try {
    const response = await fetch(apiUrl(path), { cache: 'no-store', ...init })
    return { status: response.status, body: parseJson(await response.text()) }
  } catch {
    return undefined
  }
}

function resultOf<S extends v.GenericSchema>(schema: S, asked: Asked | undefined): Result<v.InferOutput<S>> {
  if (asked === undefined) return UNREACHABLE
  const { status, body } = asked
  if (status >= 200 && status < 300) {
    const read = v.safeParse(schema, body)
    return read.success ? { ok: true, value: read.output } : { ok: false, status, message: S.errors.unreadable }
  }
  return { ok: false, status, message: messageOf(body) ?? S.errors.status(status) }
}

function messageOf(body: unknown): string | undefined {
  const read = v.safeParse(API_ERROR, body)
  return read.success ? read.output.error.message : undefined
}

const get = async <S extends v.GenericSchema>(schema: S, path: string) => resultOf(schema, await ask(path))
const post = async <S extends v.GenericSchema>(schema: S, path: string, body: unknown) =>
  resultOf(
    schema,
    await ask(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  )

export const api = {
  session: (): Promise<Result<Session>> => get(SESSION, 'session'),
  login: (password: string): Promise<Result<unknown>> => post(v.any(), 'login', { password }),
  logout: (): Promise<Result<unknown>> => post(v.any(), 'logout', {}),
  config: () => get(CONFIG_REPORT, 'config'),
  doctor: () => get(DOCTOR_REPORT, 'doctor'),
  setup: (): Promise<Result<Setup>> => get(SETUP, 'setup'),
  testHub: (hub: SetupHub): Promise<Result<SetupTest>> => post(SETUP_TEST, 'setup/test-hub', hub),
  testBroker: (broker: SetupBroker): Promise<Result<SetupTest>> => post(SETUP_TEST, 'setup/test-broker', broker),
  applySetup: (wanted: SetupApply): Promise<Result<SetupDone>> => post(SETUP_DONE, 'setup/apply', wanted),
}

/** The hub's picture of an app. */
export function iconUrl(hub: string, app: string): string {
  return apiUrl(`hubs/${encodeURIComponent(hub)}/apps/${encodeURIComponent(app)}/icon`).href
}

/** The answer of a command, or why there is none. */
export type Ended = Answer | { readonly ok: false; readonly error: { readonly code: null; readonly message: string } }

/** Whom a command is for: the bridge, a hub, or an app of a hub. */
export type For = { readonly hub?: string; readonly app?: string }

/** Sends a command; `payload` as over MQTT. Resolves when it has ended. */
export async function sendCommand(target: For, command: string, payload = ''): Promise<Ended> {
  const { hub = 'bridge', app } = target
  const levels = [hub, ...(app === undefined ? [] : ['app', encodeLevel(app)]), command]
  const isJson = /^\s*[[{]/.test(payload)
  const asked = await ask(`commands/${levels.join('/')}`, {
    method: 'POST',
    ...(payload !== '' && { headers: { 'content-type': isJson ? 'application/json' : 'text/plain' }, body: payload }),
  })
  const answer = asked && readAnswer(asked.body)
  if (answer !== undefined) return answer
  const result = resultOf(v.never(), asked)
  return { ok: false, error: { code: null, message: result.ok ? S.errors.unreadable : result.message } }
}
