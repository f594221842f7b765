/** What a set-up puts into a configuration: the text of a file, or lines to copy. */
import { createRequire } from 'node:module'
import type { Document } from 'yaml'
import { HUB_NAME_VARIABLE, hubOptions, options } from '../../../config/options.ts'
import { show } from '../../../config/schemas.ts'
import { environmentName } from '../../../config/table.ts'
import type { SetupHub } from '../api/protocol.ts'
import type { ChosenBroker } from './choice.ts'

/** A hub and, unless the broker of before stays, a broker. */
export interface Choice {
  readonly hub: SetupHub
  readonly broker: ChosenBroker | undefined
}

const yaml = (): typeof import('yaml') => createRequire(import.meta.url)('yaml')

/** Long keys stay on one line. */
const FORMAT = { lineWidth: 0 } as const

function hubValues({ name, url, api_key }: SetupHub) {
  return { [name]: { url, api_key } }
}

/** A file's text with the choice in it. Everything else that stands there stays, comments too. */
export function withChoice(text: string, { hub, broker }: Choice): string {
  const { isMap, isNode, parseDocument } = yaml()
  const doc: Document = parseDocument(text.replace(/^\uFEFF/, ''))
  if (!isMap(doc.contents)) doc.contents = doc.createNode({})
  const former = doc.get('hubs', true)
  const hubs = doc.createNode(hubValues(hub))
  // Those that stood at an empty `hubs`, such as hubs that are commented out.
  if (isNode(former)) hubs.commentBefore = [former.commentBefore, former.comment].filter(Boolean).join('\n') || null
  doc.set('hubs', hubs)
  if (broker !== undefined) {
    if (!isMap(doc.get('mqtt'))) doc.set('mqtt', doc.createNode({}))
    doc.deleteIn(['mqtt', 'password_file'])
    for (const key of ['url', 'username', 'password'] as const) {
      if (broker[key] === null) doc.deleteIn(['mqtt', key])
      else doc.setIn(['mqtt', key], asInFile(key, broker[key]))
    }
  }
  return isJson(text) ? `${JSON.stringify(doc.toJS(), null, 2)}\n` : doc.toString(FORMAT)
}

function asInFile(key: keyof ChosenBroker, value: unknown): unknown {
  return show(options[`mqtt.${key}`].schema, value)
}

/** YAML is more than JSON, and other programs that read a file of JSON take no more. */
function isJson(text: string): boolean {
  try {
    return typeof JSON.parse(text) === 'object'
  } catch {
    return false
  }
}

/** The choice as lines for a file, or for an environment, with words in the place of secrets. */
export function linesOf({ hub, broker }: Choice, as: 'file' | 'environment'): string {
  const safe: Choice = {
    hub: { ...hub, api_key: String(hubOptions.api_key.example) },
    broker: broker && { ...broker, password: broker.password && String(options['mqtt.password'].example) },
  }
  return as === 'file' ? fileLines(safe) : environmentLines(safe)
}

function fileLines({ hub, broker }: Choice): string {
  const keys = ['url', 'username', 'password'] as const
  const given = keys.flatMap((key) => (broker?.[key] ? [[key, asInFile(key, broker[key])] as const] : []))
  const mqtt = given.length === 0 ? {} : { mqtt: Object.fromEntries(given) }
  return yaml().stringify({ hubs: hubValues(hub), ...mqtt }, FORMAT)
}

function environmentLines({ hub, broker }: Choice): string {
  const { name, ...values } = hub
  const pairs = [
    [HUB_NAME_VARIABLE, name],
    ...Object.entries(values).map(([key, value]) => [environmentName(`hub.${key}`), value]),
    ...Object.entries(broker ?? {}).map(([key, value]) => [environmentName(`mqtt.${key}`), value]),
  ]
  const lines = pairs.filter(([, value]) => value !== null).map((pair) => `${pair.join('=')}\n`)
  return lines.join('')
}
