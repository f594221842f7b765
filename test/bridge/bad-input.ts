/**
 * Generates bad commands with the expected error codes. The codes do not depend on the command table, so that the test
 * finds errors in the table.
 */

import { nasty } from '../fuzz/nasty.ts'
import { Random } from '../support/random.ts'
import { ANY, APP, app, OBJECTS, ON_APP, RAW, WORDS } from './payload-samples.ts'

export interface BadInput {
  readonly kind: string
  /** The topic without the base topic. */
  readonly topic: string
  readonly payload: Buffer
  readonly code: string
  readonly retain?: true
}

const bytes = (text: string) => Buffer.from(text)
const invalid = (topic: string, payload: string | Buffer) => ({
  topic,
  payload: typeof payload === 'string' ? bytes(payload) : payload,
  code: 'invalid_payload',
})

/** Inserts members before the members of a valid object. */
const among = (right: string, members: string) => `{${members}${right === '{}' ? '' : ','}${right.slice(1)}`
const nested = (levels: number, open: string, close: string) => open.repeat(levels) + close.repeat(levels)

const BAD_UTF8 = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xe2, 0x82]].map((one) =>
  Buffer.from(one),
)
type Make = (random: Random) => Omit<BadInput, 'kind'>

const KINDS: Readonly<Record<string, Make>> = {
  binary: (random) => {
    const [topic] = random.pick(ANY)
    return invalid(topic, Buffer.concat([random.bytes(random.below(200)), Buffer.from([0xff])]))
  },
  'invalid UTF-8 in JSON': (random) => {
    const [topic, right] = random.pick(ANY)
    return invalid(topic, Buffer.concat([bytes(right.slice(0, -1)), random.pick(BAD_UTF8), bytes(right.slice(-1))]))
  },
  'too large': (random) => {
    const [topic] = random.pick(ANY)
    return invalid(topic, Buffer.alloc(64 * 1024 + 1 + random.below(64), random.pick(['a', ' ', '"', '{'])))
  },
  'too deep': (random) => {
    const [topic, right] = random.pick([...OBJECTS, ...RAW])
    const [open, close] = random.pick([
      ['[', ']'],
      ['{"a":', '}'],
    ])
    const deep = nested(random.pick([33, 64, 1000]), open, close)
    return invalid(topic, topic.endsWith('set-setting/one') ? deep : among(right, `"transaction":1,"deep":${deep}`))
  },
  'names of the prototype': (random) => {
    const [topic, right] = random.pick(OBJECTS)
    const name = random.pick(['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf'])
    return invalid(topic, among(right, `"${name}":${random.pick(['{"a":1}', '1', 'null', '"x"'])}`))
  },
  'much of one thing': (random) => {
    const [topic, right] = random.pick(OBJECTS)
    const text = nasty(random, 60 * 1024)
    return random.chance(0.5)
      ? invalid(topic, among(right, `"${random.word()}":${JSON.stringify(text).slice(0, 60 * 1024)}`))
      : invalid(topic, `{"a":${text}`)
  },
  'much of one thing in the topic': (random) => {
    // Brokers close the connection if a topic contains control characters or hundreds of levels.
    const text = nasty(random, 8 * 1024)
      .toWellFormed()
      .replace(/[+#/\p{Cc}]/gu, '')
    return { topic: `${app('x')}${text}`, payload: bytes(''), code: 'unknown_command' }
  },
  'unknown key': (random) => {
    const [topic, right] = random.pick(OBJECTS)
    return invalid(topic, among(right, `"${random.word()}":${random.pick(['1', 'null', '{}', '""'])}`))
  },
  'truncated JSON': (random) => {
    const [topic, right] = random.pick(OBJECTS)
    const whole = among(right, `"transaction":${random.below(1e6)}`)
    return invalid(topic, whole.slice(0, 1 + random.below(whole.length - 1)))
  },
  'not an object': (random) => {
    // Exclude the commands that accept text, because some of the strings below are valid for them.
    const [topic] = random.pick(OBJECTS.filter(([one]) => one !== 'home/cmd/speak' && one !== app('guard')))
    return invalid(
      topic,
      random.pick(['[]', '1', 'null', 'true', '"x"', '[{}]', ' ', '\0', 'press', `${random.below(1e9)}`]),
    )
  },
  'wrong word': (random) => {
    const [topic, right] = random.pick(WORDS)
    return invalid(
      topic,
      random.pick([
        mixed(right),
        `${right} `,
        `"${right}"`,
        '',
        '2',
        '-0',
        'null',
        '{}',
        '__proto__',
        'constructor',
        random.word(),
      ]),
    )
  },
  'unknown command': (random) => {
    const place = random.pick(['home', 'bridge', `home/app/${APP}`, `home/app/${random.word()}`])
    const name = random.pick([
      ...'Restart¦RESTART¦reboot¦constructor¦__proto__¦toString¦$SYS¦%¦🔥¦ ¦restart '.split('¦'),
      random.word(),
      `ping/${random.word()}`,
      'x'.repeat(1000),
      'a/'.repeat(20),
    ])
    return {
      topic: `${place}/cmd/${name}`,
      payload: bytes(random.pick(['', '{}', '{"transaction":"t"}'])),
      code: 'unknown_command',
    }
  },
  'unknown hub': (random) => {
    const hub = random.pick([...'Home¦HOME¦home ¦hom¦__proto__¦constructor¦%¦🏠¦$x'.split('¦'), random.word()])
    const [topic, right] = random.pick(OBJECTS.filter(([one]) => one.startsWith('home/')))
    return { topic: hub + topic.slice('home'.length), payload: bytes(right), code: 'unknown_hub' }
  },
  'unknown app': (random) => {
    const id = random.pick([
      ...'The.App¦the.app ¦%zz¦%FF¦%¦..¦%2E%2E¦%2E%2E%2F%2E%2E¦__proto__¦constructor¦🔥¦$x¦a%00b'.split('¦'),
      'x'.repeat(2000),
      random.word(),
    ])
    const [topic, right] = random.pick(ON_APP)
    // `confirm` still contains the id of `APP`, but the bridge first checks whether the app exists.
    return { topic: topic.replace(APP, () => id), payload: bytes(right), code: 'unknown_app' }
  },
}

/** Creates a retained command. Under MQTT 3.1.1, brokers clear the retain flag of live messages. */
const RETAINED: Make = (random) => {
  const [topic, right] = random.pick(ANY)
  return { topic, payload: bytes(right), code: 'retained', retain: true }
}

/** @param five whether to include retained commands, which a connected client recognises only under MQTT 5 */
export function badInputs(seed: number, five: boolean): () => BadInput {
  const random = new Random(seed)
  const kinds = Object.entries<Make>(five ? { ...KINDS, retained: RETAINED } : KINDS)
  return () => {
    const [kind, make] = random.pick(kinds)
    return { kind, ...make(random) }
  }
}

/** Mixes upper and lower case letters, so that the word is not a keyword. */
function mixed(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1).toLowerCase()
}
