import { stringify } from 'yaml'
import type { Command } from '../../contract/command.ts'
import { COMMANDS } from '../../contract/commands.ts'
import { ERROR_CODES } from '../../contract/errors.ts'
import { MAX_JSON_DEPTH, MAX_PAYLOAD_BYTES } from '../../contract/payload.ts'
import { PUBLICATIONS, type Publication } from '../../contract/publications.ts'
import { CONTRACT_VERSION, FAILURE, SUCCESS } from '../../contract/schemas.ts'
import { code, commandTopics, PLACEHOLDERS } from './markdown.ts'
import { acceptsNothing, camelCase, jsonSchema, payloadSchema } from './schema.ts'
import { offByDefault, permissionOf } from './tables.ts'

const ref = (...path: readonly string[]) => ({ $ref: `#/${path.join('/')}` })
const bindingVersion = '0.2.0'
const qos = 1

const DESCRIPTION = `The apps of a home hub on MQTT: their state, their events, and commands to them.

Every command is answered. If it has a Response Topic (MQTT 5), the answer is on that topic with the command's
Correlation Data, otherwise on the command's topic with \`cmd\` replaced by \`result\`. A payload that is a JSON object
may have \`transaction\`, which the answer repeats, and \`expires_at\`, after which the command is not executed.
With MQTT 5, Correlation Data and Message Expiry do the same for any payload. A command must not be retained. A payload has at most ${MAX_PAYLOAD_BYTES / 1024} KiB and ${MAX_JSON_DEPTH} levels of JSON.
The length of a text is in UTF-16 code units: an emoji is two or more.`

/** Returns the address of a channel. AsyncAPI marks parameters as the topics of the tables do. */
function addressed(topic: string) {
  const names = [...topic.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  return {
    address: topic,
    parameters: Object.fromEntries(names.map((name) => [name, ref('components', 'parameters', name)])),
  }
}

/** Returns an id such as `appGetSetting`, or `appGetSettingOfTopic` if the topic of the command names the setting. */
const idOf = ({ target, name, argument }: Command) =>
  camelCase(`${target} ${name}${argument === undefined ? '' : ' of topic'}`)

const messageOf = (name: string, { message = name }: Publication) => message

const topicChannel = (name: string, row: Publication) => ({
  ...addressed(row.topic),
  description: row.doc,
  messages: { [messageOf(name, row)]: ref('components', 'messages', messageOf(name, row)) },
})

const topicOperation = (id: string, { retained, doc }: Publication) => ({
  action: 'send',
  channel: ref('channels', id),
  summary: doc,
  bindings: { mqtt: { qos, retain: retained, bindingVersion } },
})

function commandMessage(command: Command) {
  const { payload, name } = command
  const contentType = payload.enveloped ? 'application/json' : 'text/plain'
  return {
    name,
    title: `${name} command`,
    contentType,
    payload: payloadSchema(command),
    ...(acceptsNothing(command) && { description: 'The payload may be empty.' }),
    bindings: {
      mqtt: {
        correlationData: { type: 'string', description: 'Identifies the command; the answer repeats it.' },
        responseTopic: {
          type: 'string',
          description: 'Topic for the answer: no wildcard, and no topic of the bridge except a result topic.',
        },
        bindingVersion,
      },
    },
  }
}

function commandOperation(command: Command) {
  const id = idOf(command)
  const permission = permissionOf(command)
  const notes = [
    permission === undefined
      ? 'It needs no permission of the hub.'
      : `The API key needs the permission ${code(permission)}.`,
    offByDefault(command) ? 'It is refused unless the configuration allows it by name.' : '',
  ]
  return {
    action: 'receive',
    channel: ref('channels', `${id}Command`),
    summary: command.doc,
    description: notes.join(' ').trim(),
    bindings: { mqtt: { qos, retain: false, bindingVersion } },
    reply: { channel: ref('channels', `${id}Result`) },
  }
}

function commandChannels(command: Command): [string, object][] {
  const { topic, result } = commandTopics(command)
  const id = idOf(command)
  return [
    [`${id}Command`, { ...addressed(topic), description: command.doc, messages: { command: commandMessage(command) } }],
    [
      `${id}Result`,
      {
        ...addressed(result),
        description: `The answer to ${command.name} without a Response Topic.`,
        messages: {
          success: ref('components', 'messages', 'success'),
          failure: ref('components', 'messages', 'failure'),
        },
      },
    ],
  ]
}

const answers = {
  success: { name: 'success', title: 'Command done', payload: jsonSchema(SUCCESS) },
  failure: {
    name: 'failure',
    title: 'Command refused or failed',
    headers: {
      type: 'object',
      description: 'User properties of MQTT 5.',
      properties: { 'error-code': { type: 'string', enum: Object.keys(ERROR_CODES) } },
    },
    payload: jsonSchema(FAILURE),
  },
}

export function asyncapi(): string {
  const topics = Object.entries<Publication>(PUBLICATIONS)
  const messages = topics.map(([name, row]) => {
    const message = messageOf(name, row)
    const contentType = row.text ? 'text/plain' : 'application/json'
    return [message, { name: message, contentType, payload: jsonSchema(row.schema) }]
  })
  const document = {
    asyncapi: '3.0.0',
    info: { title: 'hub2mqtt', version: `${CONTRACT_VERSION}.0.0`, description: DESCRIPTION, license: { name: 'MIT' } },
    defaultContentType: 'application/json',
    servers: {
      broker: {
        host: '{host}',
        protocol: 'mqtt',
        description: 'The broker that the bridge is connected to, over MQTT 5 or 3.1.1.',
        variables: { host: { default: 'localhost:1883', description: 'The option `mqtt.url`.' } },
      },
    },
    channels: {
      ...Object.fromEntries(topics.map(([id, row]) => [id, topicChannel(id, row)])),
      ...Object.fromEntries(COMMANDS.flatMap(commandChannels)),
    },
    operations: {
      ...Object.fromEntries(topics.map(([id, row]) => [id, topicOperation(id, row)])),
      ...Object.fromEntries(COMMANDS.map((command) => [`${idOf(command)}Command`, commandOperation(command)])),
    },
    components: {
      parameters: Object.fromEntries(
        Object.entries(PLACEHOLDERS).map(([name, description]) => [name, { description }]),
      ),
      messages: { ...Object.fromEntries(messages), ...answers },
    },
  }
  return `# Generated from the tables; run npm run docs.\n${stringify(document, { aliasDuplicateObjects: false, lineWidth: 120, blockQuote: 'literal' })}`
}
