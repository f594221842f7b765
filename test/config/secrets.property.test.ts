import fc from 'fast-check'
import { expect, it } from 'vitest'
import { stringify } from 'yaml'
import { describeConfig } from '../../src/config/describe.ts'
import { runs } from '../support/runs.ts'
import { type Given, load, mistakesOf } from './support.ts'

/** Each secret begins with a mark that appears in no other text. */
const secret = fc.string({ unit: 'grapheme', maxLength: 30 }).map((text) => `S3cr~${text}`)
const MARK = 'S3cr~'

/** Configurations with the secret in different places, valid or not. */
const places: ((value: string) => Given)[] = [
  (value) => ({ yaml: stringify({ hubs: { home: { url: 'http://h', api_key: value } } }) }),
  (value) => ({ yaml: stringify({ hubs: { home: { url: 'http://h', api_key: [value] } } }) }),
  (value) => ({ yaml: stringify({ hubs: { home: { url: 'http://h', api_key: { [value]: value } } } }) }),
  (value) => ({ yaml: stringify({ hubs: { home: { url: 'http://h', api_key: value, api_key_file: value } } }) }),
  (value) => ({ yaml: stringify({ hubs: { home: { url: 'http://h', api_key_file: value } } }) }),
  (value) => ({ yaml: stringify({ hubs: { home: { url: 'http://h', api_key_file: 'key' } } }), files: { key: value } }),
  (value) => ({ yaml: stringify({ hubs: { home: { url: `http://u:${value}@h`, api_key: value } } }) }),
  (value) => ({ yaml: stringify({ hubs: { home: { url: value, api_key: value, timeout: value } } }) }),
  (value) => ({ yaml: stringify({ hubs: { [value]: { api_key: value } } }) }),
  (value) => ({ yaml: stringify({ hubs: { home: { [value]: 1, api_key: value } } }) }),
  (value) => ({ yaml: stringify({ mqtt: { username: 'u', password: value, port: value, keepalive: value } }) }),
  (value) => ({ yaml: stringify({ mqtt: { url: `mqtt://u:${value}@b`, pasword: value } }) }),
  (value) => ({ yaml: `hubs: { home: { url: http://h, api_key:${value} } }` }),
  (value) => ({ yaml: `hubs:\n  home:\n    api_key: "${value}\n   url: ${value}` }),
  (value) => ({ yaml: `mqtt:\n  password: ${value}\n  password: ${value}\n` }),
  (value) => ({ yaml: `mqtt: *${value}` }),
  (value) => ({ yaml: stringify({ settings: { publish: { [value]: { [value]: value } } } }) }),
  (value) => ({ yaml: stringify({ settings: { publish: { app: { name: { type: value, [value]: value } } } } }) }),
  (value) => ({ yaml: stringify({ commands: { allow: [value] }, hubs: { home: { api_key: value } } }) }),
  (value) => ({ env: { HUB2MQTT_HUB_URL: 'http://h', HUB2MQTT_HUB_API_KEY: value } }),
  (value) => ({ env: { HUB2MQTT_HUB_API_KEY: value, HUB2MQTT_HUB_API_KEY_FILE: value } }),
  (value) => ({ env: { HUB2MQTT_HUB_API_KEY_FILE: value, HUB2MQTT_MQTT_PASSWORD_FILE: value } }),
  (value) => ({ env: { HUB2MQTT_MQTT_URL: `mqtt://u:${value}@b`, HUB2MQTT_MQTT_PASSWORD: value } }),
  (value) => ({ env: { HUB2MQTT_LOG_LEVEL: value, HUB2MQTT_HUB_API_KEY: value, HUB2MQTT_HUB_NAME: value } }),
]

it('a secret never appears in an error or in the effective configuration, wherever it was written', () => {
  fc.assert(
    fc.property(secret, fc.constantFrom(...places), (value, place) => {
      const given = place(value)
      const lines = mistakesOf(given)
      const shown = lines.length > 0 ? lines.join('\n') : describeConfig(load(given).config)
      expect(shown).not.toContain(MARK)
      for (const line of lines) expect(line).not.toMatch(/[\n\r]/)
    }),
    { numRuns: runs(300) },
  )
})
