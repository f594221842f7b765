/** What an emulated hub can be asked, as an OpenAPI 3.1 document. */
import { type JsonSchema, toJsonSchema } from '@valibot/to-json-schema'
import * as v from 'valibot'
import { type Endpoint, inPath, METHODS } from '../../emulator/core/endpoint.ts'
import { RECORD, USAGE } from '../../emulator/core/managers/apps.ts'
import { NOTIFICATION } from '../../emulator/core/managers/household.ts'
import { APP_SECTION, ENTRIES, type Entry, MANAGERS } from '../../emulator/core/table.ts'

const DESCRIPTION = `The emulated hub of hub2mqtt, which is what \`hub2mqtt emulate\` runs. It answers as hubs do: four kinds of them, by \`--flavour\`. \`x-flavours\` names the kinds that have an operation; without it all have it. A hub of the reference has \`managers\` in place of \`manager\` in every path, and the others take both.

Security names the permission that the key wants. The same operations can be asked over the realtime channel, and by the hub's own apps.`

/** Schemas that stand in the document once. */
const NAMED = { App: RECORD, Usage: USAGE, Notification: NOTIFICATION } as const

function shown(schema: v.GenericSchema, definitions: Readonly<Record<string, v.GenericSchema>> = NAMED): JsonSchema {
  const {
    $schema: _,
    $defs: __,
    ...rest
  } = toJsonSchema(schema, {
    typeMode: 'input',
    definitions,
    overrideRef: ({ referenceId }) => `#/components/schemas/${referenceId}`,
  })
  return rest
}

/** A named schema itself may refer to the others only. */
const component = (name: string, schema: v.GenericSchema) => {
  const others = Object.entries(NAMED).filter(([other]) => other !== name)
  return [name, shown(schema, Object.fromEntries(others))] as const
}

const response = (name: string) => ({ $ref: `#/components/responses/${name}` })
const content = (schema: object) => ({ 'application/json': { schema } })
const scopeOf = ({ needs }: Endpoint) => (needs === 'key' ? [] : [needs.replace(/^homey/, 'hub')])

const parameter = (name: string, place: 'path' | 'query', schema: JsonSchema, required: boolean) => {
  const { description, ...rest } = schema
  return { name, in: place, required, ...(description !== undefined && { description }), schema: rest }
}

/** Parameters and body, each field where it stands. */
function inputOf({ method, path, input, wholeBody }: Endpoint): object {
  const { properties = {}, required = [] } = shown(input)
  const fields = Object.entries(properties).flatMap(([name, schema]) =>
    typeof schema === 'boolean' ? [] : [{ name, schema, required: required.includes(name) }],
  )
  const named = inPath(path)
  const others = fields.filter(({ name }) => !named.includes(name))
  const query = method === 'GET' || method === 'DELETE'
  const parameters = [
    ...fields
      .filter(({ name }) => named.includes(name))
      .map(({ name, schema }) => parameter(name, 'path', schema, true)),
    ...(query ? others.map((one) => parameter(one.name, 'query', one.schema, one.required)) : []),
  ]
  const whole = others.find(({ name }) => name === wholeBody)?.schema
  const object = {
    type: 'object',
    properties: Object.fromEntries(others.map(({ name, schema }) => [name, schema])),
    required: others.filter((one) => one.required).map(({ name }) => name),
  }
  const mustHave = whole !== undefined || object.required.length > 0
  return {
    ...(parameters.length > 0 && { parameters }),
    ...(!query && others.length > 0 && { requestBody: { required: mustHave, content: content(whole ?? object) } }),
  }
}

function answersOf({ needs, output, input }: Endpoint): object {
  const given = Object.keys(input.entries).length > 0
  return {
    200: { description: output === undefined ? 'Done.' : 'The answer.', content: content(shown(output ?? v.null())) },
    ...(output === undefined && { 204: { description: 'Done, as some hubs say it.' } }),
    ...(given && { 400: response('Invalid') }),
    ...(needs !== 'nothing' && { 401: response('UnknownKey'), 403: response('MissingScopes') }),
    ...(given && needs !== 'nothing' && { 404: response('NotFound') }),
    429: response('TooMany'),
  }
}

function operationOf({ name, item, endpoint }: Entry): object {
  return {
    operationId: name,
    tags: [item],
    summary: endpoint.doc,
    security: endpoint.needs === 'nothing' ? [] : [{ key: scopeOf(endpoint) }],
    ...(endpoint.only !== undefined && { 'x-flavours': endpoint.only }),
    ...inputOf(endpoint),
    responses: answersOf(endpoint),
  }
}

const braced = (path: string) => path.replace(/:(\w+)/g, '{$1}')

function paths(): Record<string, object> {
  const found: Record<string, object> = {}
  const add = (path: string, method: string, operation: object) => {
    found[path] = { ...found[path], [method.toLowerCase()]: operation }
  }
  for (const entry of ENTRIES) {
    const { path, alias, method } = entry.endpoint
    const operation = operationOf(entry)
    add(`/manager/${entry.item}${braced(path)}`, method, operation)
    if (alias === undefined) continue
    const reference = { ...operation, operationId: `${entry.name}OfReference` }
    add(`/managers/${entry.item}${braced(alias)}`, method, reference)
  }
  for (const method of METHODS) add('/app/{id}/{path}', method, appOperation(method))
  return found
}

/** The section of the apps: what they take and answer only they know. */
function appOperation(method: string): object {
  const { endpoint } = APP_SECTION
  const text: JsonSchema = { type: 'string' }
  return {
    operationId: `${method.toLowerCase()}App`,
    tags: ['app'],
    summary: endpoint.doc,
    security: [{ key: scopeOf(endpoint) }],
    parameters: [
      parameter('id', 'path', { ...text, description: 'The id of the app.' }, true),
      parameter('path', 'path', { ...text, description: "The app's own, slashes included." }, true),
    ],
    ...(method !== 'GET' && method !== 'DELETE' && { requestBody: { content: content({}) } }),
    responses: {
      200: { description: 'What the app answers.', content: content({}) },
      401: response('UnknownKey'),
      403: response('MissingScopes'),
      404: response('NotFound'),
      429: response('TooMany'),
      503: response('NotRunning'),
    },
  }
}

/** The text of `config/emulated-hub.openapi.json`. */
export function hubOpenapi(): string {
  const error = (description: string) => ({ description, content: content({ $ref: '#/components/schemas/Error' }) })
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'Emulated hub of hub2mqtt',
      version: '1.0.0',
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: 'http://localhost:8080/api', description: 'As --host and --port say.' }],
    tags: [
      ...Object.entries(MANAGERS).map(([name, { doc }]) => ({ name, description: doc })),
      { name: 'app', description: 'The web APIs of the apps.' },
    ],
    paths: paths(),
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'An API key of the hub.' } },
      responses: {
        Invalid: error('A parameter is missing or wrong.'),
        UnknownKey: error('Without a key that the hub knows.'),
        MissingScopes: error('The key lacks the permission, or the hub a licence.'),
        NotFound: error('There is no such app, setting, notification or path.'),
        TooMany: error('Newer hubs and Self-Hosted Servers take four requests in 400 ms. It was not carried out.'),
        NotRunning: error('The app does not run.'),
      },
      schemas: {
        ...Object.fromEntries(Object.entries(NAMED).map(([name, schema]) => component(name, schema))),
        Error: {
          type: 'object',
          properties: { error: { type: 'string' }, error_description: { type: 'string' } },
          required: ['error'],
        },
      },
    },
  }
  return `${JSON.stringify(document, null, 2)}\n`
}
