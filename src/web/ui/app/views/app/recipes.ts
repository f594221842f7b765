/** Snippets for other programs, which send a command to an app or receive its events. Names and ids are untrusted. */
import type { CommandName } from '../../../../../contract/commands.ts'
import { defineStrings } from '../../terms.ts'

const text = defineStrings('recipes', { setting: 'a setting' })

/** Command → example payload. Commands that are not listed need no payload. */
const PAYLOADS: Readonly<Record<string, (app: string) => string | object>> = {
  enabled: () => 'ON',
  autoupdate: () => 'ON',
  update: () => ({ autoupdate: true }),
  uninstall: (app) => ({ confirm: app }),
  guard: () => ({ snooze: '1h' }),
  'get-setting': () => ({ name: text.setting }),
  'set-setting': () => ({ name: text.setting, value: true }),
  'unset-setting': () => ({ name: text.setting }),
} satisfies { [C in CommandName<'app'>]?: (app: string) => string | object }

/** Returns an example in printable ASCII. Escapes `{{`, `{%` and `{#`, which start a template in Home Assistant. */
export function payloadOf(command: string, app: string): string {
  const payload = PAYLOADS[command]?.(app) ?? ''
  if (typeof payload === 'string') return payload
  return JSON.stringify(payload).replace(/\{(?=[{%#])|[^ -~]/g, escaped)
}

const escaped = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Matches characters that are invisible or change the direction of text. */
const INVISIBLE = /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g

/** Quotes a string with double quotes, which are valid in JSON, YAML and Home Assistant templates. */
const quoted = (text: string) => JSON.stringify(text.toWellFormed()).replace(INVISIBLE, escaped)

/** Turns a string that Home Assistant would interpret as a template into a template that returns the string. */
const literal = (text: string) => quoted(/\{[{%#]/.test(text) ? `{{ ${quoted(text)} }}` : text)

/** Quotes a string for a shell. */
const word = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`

export function commandRecipe(label: string, topic: string, payload: string) {
  const homeAssistant = `alias: ${quoted(label)}
sequence:
  - action: mqtt.publish
    data:
      topic: ${literal(topic)}
      payload: ${literal(payload)}
      qos: 1`
  const sent = payload === '' ? '-n' : `-m ${word(payload)}`
  const press = { ...node('inject', label, 140), props: [{ p: 'payload' }], payload, payloadType: 'str' }
  const out = { ...node('mqtt out', label, 380), topic, qos: '1', retain: 'false', broker: '' }
  return { homeAssistant, nodeRed: flowOf(press, out), shell: `mosquitto_pub -q 1 -t ${word(topic)} ${sent}` }
}

export function eventRecipe(label: string, topic: string) {
  const homeAssistant = `alias: ${quoted(label)}
triggers:
  - trigger: mqtt
    topic: ${literal(topic)}
actions:
  - action: persistent_notification.create
    data:
      message: "{{ trigger.payload_json.event_type }}"`
  const source = { ...node('mqtt in', label, 140), topic, qos: '1', datatype: 'json', broker: '' }
  const shown = { ...node('debug', label, 380), complete: 'payload' }
  return { homeAssistant, nodeRed: flowOf(source, shown), shell: `mosquitto_sub -q 1 -t ${word(topic)}` }
}

/** Returns a node of Node-RED, which assigns a new id if this id is already in use. */
function node(type: string, name: string, x: number) {
  return { id: `hub2mqtt-${type.replace(' ', '-')}`, type, name, x, y: 80 }
}

function flowOf(from: ReturnType<typeof node>, to: ReturnType<typeof node>): string {
  const nodes = [
    { ...from, wires: [[to.id]] },
    { ...to, wires: [] },
  ]
  return JSON.stringify(nodes).replace(INVISIBLE, escaped)
}
