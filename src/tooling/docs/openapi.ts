import type * as v from 'valibot'
import type { Command } from '../../contract/command.ts'
import { COMMANDS } from '../../contract/commands.ts'
import { CONTRACT_VERSION, FAILURE, SUCCESS } from '../../contract/schemas.ts'
import { COMMAND_ANSWERS } from '../../web/server/api/command.ts'
import * as protocol from '../../web/server/api/protocol.ts'
import { ROUTES, type Route } from '../../web/server/api/routes.ts'
import { commandTopics, markdownTable, PLACEHOLDERS } from './markdown.ts'
import { acceptsNothing, camelCase, jsonSchema, payloadSchema } from './schema.ts'

const DESCRIPTION = `The API of hub2mqtt's page, also for scripts. It has the same payloads, commands, answers and rules as the MQTT interface.

A browser logs in with the password and keeps a cookie. A script sends a token of the option \`http.tokens\`. If no password is set and the listener is bound to loopback, programs on the machine itself can read without a login, and use the start-up token for everything else. Requests that change something must come from the page's own origin, or not from a web page; a body needs \`content-type: application/json\`.`

const schemaRef = (name: string) => ({ $ref: `#/components/schemas/${name}` })

/** Schemas that other parts of the document refer to. */
const NAMED: Readonly<Record<string, v.GenericSchema>> = {
  Session: protocol.SESSION,
  LiveFrame: protocol.LIVE_FRAME,
  Error: protocol.API_ERROR,
  LogLines: protocol.LOG_LINES,
  DoctorReport: protocol.DOCTOR_REPORT,
  ConfigReport: protocol.CONFIG_REPORT,
  State: protocol.STATE,
  Success: SUCCESS,
  Failure: FAILURE,
}

function shown(schema: v.GenericSchema): object {
  const [name] = Object.entries(NAMED).find(([, one]) => one === schema) ?? []
  return name === undefined ? jsonSchema(schema) : schemaRef(name)
}

type Answer = Route['answers'][number]

function responseOf({ doc, schema, type }: Answer): object {
  const content = type
    ? { [type]: { schema: { type: 'string', format: 'binary' } } }
    : schema && { 'application/json': { schema: shown(schema) } }
  return { description: doc, ...(content && { content }) }
}

const response = (name: string) => ({ $ref: `#/components/responses/${name}` })

function responsesOf({ access, method, commands, answers: own }: Route): object {
  return {
    ...(access !== 'open' && { 401: response('Login') }),
    403: response('Refused'),
    421: response('Host'),
    429: response('Tries'),
    ...(method === 'POST' && { 413: response('TooLarge') }),
    ...Object.fromEntries(
      Object.entries(own).map(([status, answer]) => [
        status,
        commands ? response(`Command${status}`) : responseOf(answer),
      ]),
    ),
  }
}

const LOGIN: readonly object[] = [{ cookie: [] }, { token: [] }, {}]

const { hub, app, name } = PLACEHOLDERS
const PATH_PARAMETERS = { hub, app, name, hours: 'From 1 to 168.' }

const parametersOf = (path: string) =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({ $ref: `#/components/parameters/${name}` }))

const queryOf = ({ query = {} }: Route) =>
  Object.entries(query).map(([name, description]) => ({ name, in: 'query', description, schema: { type: 'string' } }))

/** @param head the first fields of the operation; `id` consists of words, which become the `operationId` */
function operation(
  route: Route,
  path: string,
  { id, ...head }: { readonly id: string; readonly tags?: readonly string[]; readonly summary: string },
  body?: { readonly required: boolean; readonly schema: object },
): [string, object] {
  const parameters = [...parametersOf(path), ...queryOf(route)]
  const described = {
    operationId: camelCase(id),
    ...head,
    security: route.access === 'open' ? [] : LOGIN,
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: body.required, content: { 'application/json': { schema: body.schema } } } }),
    responses: responsesOf(route),
  }
  return [path, { [route.method.toLowerCase()]: described }]
}

function routeOperation(route: Route): [string, object] {
  const { method, path, doc: summary, request } = route
  const id = `${method.toLowerCase()} ${path.slice('api/'.length)}`
  return operation(route, `/${path}`, { id, summary }, request && { required: true, schema: shown(request) })
}

/** Returns the operation of a command. Its path is the command's topic without the base topic and `cmd`. */
function commandOperation(route: Route, command: Command): [string, object] {
  const { target, name, argument, doc: summary } = command
  const path = `/api/commands/${commandTopics(command).topic.replace('{base}/', '').replace('/cmd/', '/')}`
  const id = `${target} ${name}${argument === undefined ? '' : ' of path'}`
  const body = { required: !acceptsNothing(command), schema: payloadSchema(command) }
  return operation(route, path, { id, tags: ['commands'], summary }, body)
}

export function openapi(): string {
  const error = (description: string) => ({
    description,
    content: { 'application/json': { schema: schemaRef('Error') } },
  })
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'hub2mqtt',
      version: `${CONTRACT_VERSION}.0.0`,
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: 'http://localhost:8099', description: 'The address from `http.host` and `http.port`.' }],
    paths: Object.fromEntries(
      ROUTES.flatMap((route) =>
        route.commands ? COMMANDS.map((command) => commandOperation(route, command)) : [routeOperation(route)],
      ),
    ),
    components: {
      securitySchemes: {
        cookie: {
          type: 'apiKey',
          in: 'cookie',
          name: 'hub2mqtt_8099',
          description: 'The name ends with the port of the page, by default `http.port`.',
        },
        token: { type: 'http', scheme: 'bearer', description: 'One of `http.tokens`, or the start-up token.' },
      },
      parameters: Object.fromEntries(
        Object.entries(PATH_PARAMETERS).map(([name, description]) => [
          name,
          { name, in: 'path', required: true, description, schema: { type: 'string' } },
        ]),
      ),
      responses: {
        Login: error('A login or a token is required.'),
        Refused: error('The request comes from another origin, its token may only read, or no login is configured.'),
        Tries: error('Too many wrong tokens; see `Retry-After`. A correct one is always accepted.'),
        Host: { description: 'This host name is not accepted: see `http.allowed_hosts`.' },
        TooLarge: error('The body is too large.'),
        ...Object.fromEntries(
          Object.entries(COMMAND_ANSWERS).map(([status, answer]) => [`Command${status}`, responseOf(answer)]),
        ),
      },
      schemas: Object.fromEntries(Object.entries(NAMED).map(([name, schema]) => [name, jsonSchema(schema)])),
    },
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

const ACCESS: Readonly<Record<Route['access'], string>> = {
  open: 'everyone',
  local: 'read access, or a program on this machine',
  read: 'read access',
  full: 'full access',
}

export function routesSection(): string {
  const rows = ROUTES.map(({ method, path, access, doc }) => [`\`${method} ${path}\``, ACCESS[access], doc])
  return markdownTable(['Route', 'For', 'Description'], rows)
}
