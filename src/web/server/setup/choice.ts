/** What somebody chose at the set-up, checked by the rules of the configuration. */
import { isDeepStrictEqual } from 'node:util'
import * as v from 'valibot'
import { merge } from '../../../config/merge.ts'
import { type Config, EXPECTED_NAME, type HubConfig, hubName, hubOptions, options } from '../../../config/options.ts'
import { rules } from '../../../config/rules.ts'
import { fromText } from '../../../config/schemas.ts'
import type { SetupBroker, SetupHub } from '../api/protocol.ts'

/** As the configuration has it: `url` lists its addresses. */
export type ChosenBroker = Pick<Config['mqtt'], keyof SetupBroker>

/** A value, or what is wrong with what was given: one line for each mistake. */
export type Checked<T> = { readonly value: T; readonly wrong?: never } | { readonly wrong: readonly string[] }

/** With the other options of a hub as they are by default. */
export function checkHub(given: SetupHub): Checked<{ readonly chosen: SetupHub; readonly hub: HubConfig }> {
  const name = given.name.trim()
  const wrong = v.is(hubName, name) ? [] : [`name: ${EXPECTED_NAME}`]
  const read = <S extends v.GenericSchema<unknown, string>>(key: 'url' | 'api_key', schema: S): string => {
    const result = v.safeParse(schema, given[key].trim(), { abortPipeEarly: true })
    if (result.success) return result.output
    wrong.push(`${key}: ${result.issues[0].message}`)
    return ''
  }
  const chosen = { name, url: read('url', hubOptions.url.schema), api_key: read('api_key', hubOptions.api_key.schema) }
  if (wrong.length > 0) return { wrong }
  const hub = merge(hubOptions, [
    new Map([
      ['url', chosen.url],
      ['api_key', chosen.api_key],
    ]),
  ])
  return { value: { chosen, hub } }
}

/** The configuration with that broker; `chosen` is `undefined` where it has it already, and its login stays. */
export function checkBroker(
  given: SetupBroker,
  config: Config,
): Checked<{ readonly chosen: ChosenBroker | undefined; readonly config: Config }> {
  const wrong: string[] = []
  const read = <T>(key: keyof SetupBroker, schema: v.GenericSchema<unknown, T>): T | null => {
    const raw = given[key]
    if (raw === null) return null
    const value = key === 'url' ? fromText(schema, raw.trim()) : raw
    const result = v.safeParse(schema, value, { abortPipeEarly: true })
    if (result.success) return result.output
    wrong.push(`${key}: ${result.issues[0].message}`)
    return null
  }
  const chosen = {
    url: read('url', options['mqtt.url'].schema),
    username: read('username', options['mqtt.username'].schema),
    password: read('password', options['mqtt.password'].schema),
  }
  if (wrong.length > 0) return { wrong }
  if (isDeepStrictEqual(chosen.url, config.mqtt.url) && chosen.username === null && chosen.password === null) {
    return { value: { chosen: undefined, config } }
  }
  const next = { ...config, mqtt: { ...config.mqtt, ...chosen } }
  const broken = rules.filter(({ severity }) => severity === 'mistake').map(({ check }) => check(next))
  const lines = broken.filter((line) => line !== undefined)
  return lines.length > 0 ? { wrong: lines } : { value: { chosen, config: next } }
}
