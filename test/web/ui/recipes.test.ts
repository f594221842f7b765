import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { COMMANDS } from '../../../src/contract/commands.ts'
import { createTopics } from '../../../src/contract/topics.ts'
import { commandRecipe, eventRecipe, payloadOf } from '../../../src/web/ui/app/views/app/recipes.ts'

const IDS = [
  'com.athom.hue',
  `it's "quoted" \\ $(touch x) \`y\` ; {{ states }} {% x %} {# y #}`,
  '{{{"confirm":1}}}',
  '../+/#/$SYS',
  'line\nbreak\ttab\u0000',
  '\u202eevil\u2066\u200b',
  'lone \ud800',
  '😀 Ωmega',
]
const BASES = ['hub2mqtt', `it's "my" $HOME \`base\` \\ {{ x }}/ä😀/{%y%}`]
const names = [
  ...new Set(COMMANDS.filter(({ target, argument }) => target === 'app' && !argument).map(({ name }) => name)),
]

/** Returns the arguments that a shell passes to each command. One shell reads all lines, because its start is slow. */
function wordsOf(lines: readonly string[]): string[][] {
  const define = `mosquitto_pub() { printf '%s\\0' "$#" "$@"; }; mosquitto_sub() { mosquitto_pub "$@"; }`
  const printed = execFileSync('sh', ['-c', [define, ...lines].join('\n')])
    .toString('utf8')
    .split('\0')
  const words = lines.map(() => printed.splice(0, 1 + Number(printed[0])).slice(1))
  // The shell must have executed nothing else.
  expect(printed).toEqual([''])
  return words
}

/** Returns what Home Assistant renders: the text itself, or the string in a template. */
function rendered(text: unknown): unknown {
  if (!/\{[{%#]/.test(String(text))) return text
  const [, inside = ''] = /^\{\{ (".*") \}\}$/s.exec(String(text)) ?? []
  return JSON.parse(inside)
}

describe('the text to paste into other programs', () => {
  test.each(names)('sends a payload that the command accepts, for any app: %s', (name) => {
    const command = COMMANDS.find((one) => one.name === name && one.target === 'app' && !one.argument)
    for (const id of IDS) {
      const payload = payloadOf(name, id)
      expect(() => command?.payload.read(payload).input()).not.toThrow()
      expect(payload).toMatch(/^[ -~]*$/)
      expect(payload).not.toMatch(/\{[{%#]/)
    }
    if (name === 'uninstall') for (const id of IDS) expect(JSON.parse(payloadOf(name, id))).toEqual({ confirm: id })
  })

  test.each(BASES)('has the same topic and payload for each of them, below %s', (base) => {
    const topics = createTopics(base)
    const shells: string[] = []
    const words: string[][] = []
    for (const id of IDS) {
      const topic = topics.appCommand('home', id, 'uninstall')
      for (const payload of [payloadOf('uninstall', id), '', 'ON']) {
        const { homeAssistant, nodeRed, shell } = commandRecipe(`${id}: "x"`, topic, payload)
        const script = parse(homeAssistant)
        expect(script.alias).toBe(`${id}: "x"`.toWellFormed())
        const { data } = script.sequence[0]
        expect([rendered(data.topic), rendered(data.payload)]).toEqual([topic, payload])
        const [inject, out] = JSON.parse(nodeRed)
        expect([out.topic, inject.payload, inject.wires]).toEqual([topic, payload, [[out.id]]])
        const sent = payload === '' ? ['-n'] : ['-m', payload]
        shells.push(shell)
        words.push(['-q', '1', '-t', topic, ...sent])
        for (const text of [homeAssistant, nodeRed, shell]) expect(text).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/)
      }
    }
    expect(wordsOf(shells)).toEqual(words)
  })

  test('receives the events of the app', () => {
    for (const base of BASES) {
      const topic = createTopics(base).of('appEvent', { hub: 'home', app: IDS[1] ?? '' })
      const { homeAssistant, nodeRed, shell } = eventRecipe('events', topic)
      expect(rendered(parse(homeAssistant).triggers[0].topic)).toBe(topic)
      expect(JSON.parse(nodeRed)[0]).toMatchObject({ type: 'mqtt in', topic })
      expect(wordsOf([shell])).toEqual([['-q', '1', '-t', topic]])
    }
  })
})
