import { createRequire } from 'node:module'
import { isDeepStrictEqual } from 'node:util'
import * as v from 'valibot'
import type { Document } from 'yaml'
import { parseJson } from '../../../base/json.ts'
import { MASK } from '../../../config/describe.ts'
import { type Config, EXPECTED_NAME, HUB_NAME_VARIABLE, hubName, hubOptions, options } from '../../../config/options.ts'
import { checkRules } from '../../../config/rules.ts'
import { fromText, show } from '../../../config/schemas.ts'
import { environmentName, merge } from '../../../config/table.ts'
import type { SetupBroker, SetupHub } from '../api/protocol.ts'

/** A broker in the format of the configuration. Its `url` is a list of addresses; on the page it is one string. */
type ChosenBroker = Pick<Config['mqtt'], keyof SetupBroker>

/** The user's choice on the setup page. `broker` is `undefined` to keep the current broker. */
export type Choice = { readonly hub: SetupHub; readonly broker: ChosenBroker | undefined }

/** The result of a check: the checked value, or `wrong` with one line for each error. */
export type Checked<T> = { readonly value: T; readonly wrong?: never } | { readonly wrong: readonly string[] }

/** Checks a hub. The result includes the defaults of the hub's other options. */
export function checkHub(given: SetupHub) {
  const name = given.name.trim()
  const wrong = v.is(hubName, name) ? [] : [`name: ${EXPECTED_NAME}`]
  const url = read('url', hubOptions.url.schema, given.url.trim(), wrong) ?? ''
  const api_key = read('api_key', hubOptions.api_key.schema, given.api_key.trim(), wrong) ?? ''
  if (wrong.length > 0) return { wrong }
  const hub = merge(hubOptions, [new Map(Object.entries({ url, api_key }))])
  return { value: { chosen: { name, url, api_key }, hub } }
}

/** If the value is not valid, adds a line to `wrong` and returns `undefined`. */
function read<T>(key: string, schema: v.GenericSchema<unknown, T>, value: unknown, wrong: string[]): T | undefined {
  const result = v.safeParse(schema, value, { abortPipeEarly: true })
  if (result.success) return result.output
  wrong.push(`${key}: ${result.issues[0].message}`)
  return undefined
}

/** Checks a broker. If it is the current broker without a new login, `chosen` is `undefined` and the login is kept. */
export function checkBroker(
  given: SetupBroker,
  config: Config,
): Checked<{ readonly chosen: ChosenBroker | undefined; readonly config: Config }> {
  const wrong: string[] = []
  const own = <T>(key: keyof SetupBroker, schema: v.GenericSchema<unknown, T>): T | null => {
    const raw = given[key]
    const value = key === 'url' && raw !== null ? fromText(schema, raw.trim()) : raw
    return value === null ? null : (read(key, schema, value, wrong) ?? null)
  }
  const chosen = {
    url: own('url', options['mqtt.url'].schema),
    username: own('username', options['mqtt.username'].schema),
    password: own('password', options['mqtt.password'].schema),
  }
  if (wrong.length > 0) return { wrong }
  if (isDeepStrictEqual(chosen.url, config.mqtt.url) && chosen.username === null && chosen.password === null) {
    return { value: { chosen: undefined, config } }
  }
  const next = { ...config, mqtt: { ...config.mqtt, ...chosen } }
  const { mistakes } = checkRules(next)
  return mistakes.length > 0 ? { wrong: mistakes } : { value: { chosen, config: next } }
}

const yaml = (): typeof import('yaml') => createRequire(import.meta.url)('yaml')

/** Adds the choice to the text of a configuration file. Keeps everything else, including comments and line endings. */
export function withChoice(text: string, { hub: { name, ...values }, broker }: Choice): string {
  const { isMap, isNode, parseDocument } = yaml()
  const lines = text.replaceAll('\r\n', '\n')
  const doc: Document = parseDocument(lines.replace(/^\uFEFF/, ''))
  if (!isMap(doc.contents)) doc.contents = doc.createNode({})
  // Keep the comments in an empty value, such as hubs that are commented out.
  const replace = (key: string, value: object) => {
    const old = doc.get(key, true)
    const node = doc.createNode(value)
    if (isNode(old)) node.commentBefore = [old.commentBefore, old.comment].filter(Boolean).join('\n') || null
    doc.set(key, node)
  }
  replace('hubs', { [name]: values })
  if (broker !== undefined) {
    if (!isMap(doc.get('mqtt'))) replace('mqtt', {})
    doc.deleteIn(['mqtt', 'password_file'])
    for (const key of ['url', 'username', 'password'] as const) {
      const { schema } = options[`mqtt.${key}`]
      if (broker[key] === null) doc.deleteIn(['mqtt', key])
      else doc.setIn(['mqtt', key], show(schema, broker[key]))
    }
  }
  // A JSON file must stay JSON, because other programs may read it. `lineWidth: 0` keeps long API keys on one line.
  const isJson = typeof parseJson(text) === 'object'
  const written = isJson ? `${JSON.stringify(doc.toJS(), null, 2)}\n` : doc.toString({ lineWidth: 0 })
  return lines === text ? written : written.replaceAll('\n', '\r\n')
}

/** The texts that replace secrets: a mask if the file was written, or an example if the user must copy the lines. */
const WORDS = {
  written: { key: MASK, password: MASK },
  copy: { key: String(hubOptions.api_key.example), password: String(options['mqtt.password'].example) },
}

export function linesOf({ hub, broker }: Choice, as: 'file' | 'environment', use: keyof typeof WORDS): string {
  const { key, password } = WORDS[use]
  const safe: Choice = {
    hub: { ...hub, api_key: key },
    broker: broker && { ...broker, password: broker.password && password },
  }
  return as === 'file' ? withChoice('', safe) : environmentLines(safe)
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
