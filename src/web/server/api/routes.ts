/**
 * Every route of the HTTP API, one row each. The router, the checks of who may ask, the OpenAPI document and the table of
 * the documentation follow from it.
 */
import * as v from 'valibot'
import * as answers from './answers.ts'
import type { Access } from './protocol.ts'
import * as protocol from './protocol.ts'
import { type ApiReply, type ApiRequest, json, readJson, refuse } from './reply.ts'
import type { Services } from './services.ts'
import { SETUP_ROUTES } from './setup-routes.ts'

interface Answer {
  readonly doc: string
  /** Of a JSON body; without it there is another kind, or none. */
  readonly schema?: v.GenericSchema
  readonly type?: string
}

export interface Route {
  readonly method: 'GET' | 'POST'
  /** Below the listener's address, or the prefix of a reverse proxy. `{name…}` at the end stands for the rest. */
  readonly path: string
  /** What a caller needs. */
  readonly access: 'open' | Access
  /** Open to all, and to the pages of other origins, where `http.public_url` is set. */
  readonly shown?: true
  readonly doc: string
  /** Of the body, which is JSON. */
  readonly request?: v.GenericSchema
  /** Status → what it says; what every route may answer is left out. */
  readonly answers: Readonly<Record<number, Answer>>
  /** Whether it may take longer than a few seconds. */
  readonly slow?: true
  /** Whether it also asks for a command's documentation: one operation for each command. */
  readonly commands?: true
  /** `live`: a WebSocket. */
  readonly run: 'live' | ((services: Services, request: ApiRequest) => ApiReply | Promise<ApiReply>)
}

/** Whoever opens an SVG by itself gets a picture and not a page. It may change with the app's version. */
const ICON = { 'content-security-policy': "default-src 'none'; sandbox", 'cache-control': 'private, max-age=3600' }

const LOGIN = v.strictObject({ password: v.pipe(v.string(), v.maxLength(4096)) })

export const ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: 'api/session',
    access: 'open',
    doc: 'The permissions of the client, and how to log in.',
    answers: { 200: { doc: "The client's session.", schema: protocol.SESSION } },
    run: (services, { caller, door }) => ({ ...json(200, services.session(caller)), headers: door.renew() }),
  },
  {
    method: 'POST',
    path: 'api/login',
    access: 'open',
    doc: 'Logs a browser in: the answer sets a cookie.',
    request: LOGIN,
    answers: {
      204: { doc: 'Logged in.' },
      401: { doc: 'Wrong password.', schema: protocol.API_ERROR },
      429: { doc: 'Too many tries; `Retry-After` says for how long.', schema: protocol.API_ERROR },
    },
    slow: true,
    run(_, { body, door }) {
      const given = readJson(LOGIN, body)
      return given === undefined ? refuse(400, 'invalid', 'Expected {"password": "…"}.') : door.login(given.password)
    },
  },
  {
    method: 'POST',
    path: 'api/logout',
    access: 'open',
    doc: 'Ends the session of a browser.',
    answers: { 204: { doc: 'Logged out.' } },
    run: (_, { door }) => door.logout(),
  },
  {
    method: 'GET',
    path: 'api/live',
    access: 'local',
    doc: 'A WebSocket: a snapshot, then changes, events and answers, one JSON text per message.',
    answers: {
      101: { doc: 'Frames of this form follow.', schema: protocol.LIVE_FRAME },
      503: { doc: 'Too many clients are connected.', schema: protocol.API_ERROR },
    },
    run: 'live',
  },
  {
    method: 'GET',
    path: 'api/state',
    access: 'local',
    doc: 'All retained messages of the bridge; in a fleet also the states of other members and their hubs.',
    answers: { 200: { doc: 'Topic → payload.', schema: answers.STATE } },
    run: (services, { caller }) => json(200, services.state(caller)),
  },
  {
    method: 'POST',
    path: 'api/commands/{topic…}',
    access: 'full',
    doc: 'Sends a command: the path ends with its topic, without the base topic and `cmd`; the body is the payload.',
    answers: answers.COMMAND_ANSWERS,
    slow: true,
    commands: true,
    run: (services, request) => services.command(request),
  },
  {
    method: 'GET',
    path: 'api/hubs/{hub}/apps/{app}/icon',
    access: 'local',
    shown: true,
    doc: 'The icon of an app from the hub; with `http.public_url` without a login.',
    answers: {
      200: { doc: 'PNG, JPEG, WebP or SVG.', type: 'image/*' },
      404: { doc: 'No icon.', schema: protocol.API_ERROR },
    },
    slow: true,
    async run(services, { parameters: { hub = '', app = '' } }) {
      const icon = await services.icon(hub, app)
      return icon === undefined ? refuse(404, 'no_icon', 'There is no icon.') : { status: 200, ...icon, headers: ICON }
    },
  },
  {
    method: 'GET',
    path: 'api/config',
    access: 'read',
    doc: 'The current configuration, with secrets masked.',
    answers: { 200: { doc: 'As a file would hold it.', schema: protocol.CONFIG_REPORT } },
    run: (services) => json(200, services.config()),
  },
  {
    method: 'GET',
    path: 'api/doctor',
    access: 'full',
    doc: 'Tests the hubs and the broker as `hub2mqtt doctor` does, which takes a while.',
    answers: { 200: { doc: 'The result.', schema: protocol.DOCTOR_REPORT } },
    slow: true,
    run: async (services) => json(200, await services.doctor()),
  },
  ...SETUP_ROUTES,
  {
    method: 'GET',
    path: 'api/openapi.json',
    access: 'open',
    doc: 'This document.',
    answers: { 200: { doc: 'OpenAPI 3.1.' } },
    run: async (services) => ({ status: 200, body: await services.openapi() }),
  },
]
