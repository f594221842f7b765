/**
 * Commands that the contract calls bad, made from a seed, each with the code that must come back. What is expected is
 * said here once more, apart from the command table: a generator that derived it would agree with anything.
 */

import { Dice } from '../support/dice.ts'
import { ANY, APP, app, OBJECTS, ON_APP, RAW, WORDS, WRONG_TYPES } from './payload-samples.ts'

export interface BadInput {
  readonly kind: string
  /** Below the base topic. */
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

/** A right object with members put in front. */
const among = (right: string, members: string) => `{${members}${right === '{}' ? '' : ','}${right.slice(1)}`
const nested = (levels: number, open: string, close: string) => open.repeat(levels) + close.repeat(levels)

const BAD_UTF8 = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xe2, 0x82]].map((one) =>
  Buffer.from(one),
)
const HUGE = ['1e999', '-1e999', `1${'0'.repeat(400)}`] as const
type Make = (dice: Dice) => Omit<BadInput, 'kind'>

/** One kind of bad input each. */
const KINDS: Readonly<Record<string, Make>> = {
  binary: (dice) => {
    const [topic] = dice.pick(ANY)
    return invalid(topic, Buffer.concat([dice.bytes(dice.below(200)), Buffer.from([0xff])]))
  },
  'invalid UTF-8 in JSON': (dice) => {
    const [topic, right] = dice.pick(ANY)
    return invalid(topic, Buffer.concat([bytes(right.slice(0, -1)), dice.pick(BAD_UTF8), bytes(right.slice(-1))]))
  },
  'too large': (dice) => {
    const [topic] = dice.pick(ANY)
    return invalid(topic, Buffer.alloc(64 * 1024 + 1 + dice.below(64), dice.pick(['a', ' ', '"', '{'])))
  },
  'too deep': (dice) => {
    const [topic, right] = dice.pick([...OBJECTS, ...RAW])
    const [open, close] = dice.pick([
      ['[', ']'],
      ['{"a":', '}'],
    ])
    const deep = nested(dice.pick([33, 64, 1000]), open, close)
    return invalid(topic, topic.endsWith('set-setting/one') ? deep : among(right, `"transaction":1,"deep":${deep}`))
  },
  'names of the prototype': (dice) => {
    const [topic, right] = dice.pick(OBJECTS)
    const name = dice.pick(['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf'])
    return invalid(topic, among(right, `"${name}":${dice.pick(['{"a":1}', '1', 'null', '"x"'])}`))
  },
  'unknown key': (dice) => {
    const [topic, right] = dice.pick(OBJECTS)
    return invalid(topic, among(right, `"${dice.word()}":${dice.pick(['1', 'null', '{}', '""'])}`))
  },
  'truncated JSON': (dice) => {
    const [topic, right] = dice.pick(OBJECTS)
    const whole = among(right, `"transaction":${dice.below(1e6)}`)
    return invalid(topic, whole.slice(0, 1 + dice.below(whole.length - 1)))
  },
  'not an object': (dice) => {
    const [topic] = dice.pick(OBJECTS.filter(([one]) => one !== 'home/cmd/speak'))
    return invalid(
      topic,
      dice.pick(['[]', '1', 'null', 'true', '"x"', '[{}]', ' ', '\0', 'press', `${dice.below(1e9)}`]),
    )
  },
  'wrong type': (dice) => invalid(...dice.pick(WRONG_TYPES)),
  'wrong word': (dice) => {
    const [topic, right] = dice.pick(WORDS)
    return invalid(
      topic,
      dice.pick([
        right.toLowerCase() === right ? right.toUpperCase() : right.toLowerCase(),
        `${right} `,
        `"${right}"`,
        '',
        '1',
        '0',
        'null',
        '{}',
        '__proto__',
        'constructor',
        dice.word(),
      ]),
    )
  },
  'bad transaction': (dice) => {
    const [topic, right] = dice.pick(OBJECTS)
    return invalid(
      topic,
      among(right, `"transaction":${dice.pick(['{}', '[]', 'true', 'null', `"${'t'.repeat(257)}"`, ...HUGE])}`),
    )
  },
  'bad expiry': (dice) => {
    const [topic, right] = dice.pick(OBJECTS)
    const text = dice.pick([
      '"soon"',
      '"2020"',
      '"2020-01-01"',
      '"2020-01-01T00:00:00"',
      '"2020-01-01T00:00:00+01"',
      '"2020-13-01T00:00:00Z"',
      '""',
      'true',
      'null',
      '[]',
      '{}',
      ...HUGE,
    ])
    return invalid(topic, among(right, `"expires_at":${text}`))
  },
  expired: (dice) => {
    const [topic, right] = dice.pick(OBJECTS)
    const at = dice.pick(['"2020-01-01T00:00:00Z"', '"1970-01-01T00:00:00.5+02:00"', '0', '-1', `${dice.below(1e12)}`])
    return { topic, payload: bytes(among(right, `"expires_at":${at}`)), code: 'expired' }
  },
  'huge number': (dice) => {
    const [topic, key] = dice.pick([
      [app('update'), 'channel'],
      [app('restart'), 'message'],
      [app('get-setting'), 'name'],
      ['home/cmd/speak', 'text'],
    ])
    return invalid(topic, `{"${key}":${dice.pick(HUGE)}}`)
  },
  'a setting that no path can name': (dice) => {
    const name = dice.pick(['.', '..', '\\ud800', 'a\\udfff'])
    const [command, more] = dice.pick([
      ['get-setting', ''],
      ['unset-setting', ''],
      ['set-setting', ',"value":1'],
    ])
    return invalid(app(command), `{"name":"${name}"${more}}`)
  },
  'hostile setting in the topic': (dice) => {
    const command = dice.pick(['get-setting', 'set-setting', 'unset-setting'])
    const name = dice.pick([
      '',
      '%',
      '%zz',
      '%4',
      '%FF',
      '%C0%80',
      '.',
      '..',
      '%2E',
      '%2E%2E',
      'a/b',
      '../..',
      `a/${dice.word()}/b`,
      '%ED%A0%80',
    ])
    return invalid(app(`${command}/${name}`), '')
  },
  'unknown command': (dice) => {
    const place = dice.pick(['home', 'bridge', `home/app/${APP}`, `home/app/${dice.word()}`, 'nowhere'])
    const name = dice.pick([
      'Restart',
      'RESTART',
      'reboot',
      'constructor',
      '__proto__',
      'toString',
      '$SYS',
      '%',
      '🔥',
      ' ',
      'restart ',
      dice.word(),
      `ping/${dice.word()}`,
      'x'.repeat(1000),
      'a/'.repeat(20),
    ])
    return {
      topic: `${place}/cmd/${name}`,
      payload: bytes(dice.pick(['', '{}', '{"transaction":"t"}'])),
      code: 'unknown_command',
    }
  },
  'no command': (dice) => ({
    topic: `${dice.pick(['home', 'bridge', `home/app/${APP}`])}/cmd${dice.pick(['', '/', '//'])}`,
    payload: bytes('{}'),
    code: 'unknown_command',
  }),
  'wrong place': (dice) => ({
    topic: dice.pick([
      'home/cmd/restart',
      'bridge/cmd/refresh',
      app('speak'),
      app('restart/one'),
      'home/cmd/ping',
      'bridge/app/x/cmd/ping',
    ]),
    payload: bytes(''),
    code: 'unknown_command',
  }),
  'unknown hub': (dice) => {
    const hub = dice.pick(['Home', 'HOME', 'home ', 'hom', '__proto__', 'constructor', '%', '🏠', '$x', dice.word()])
    const [topic, right] = dice.pick(OBJECTS.filter(([one]) => one.startsWith('home/')))
    return { topic: hub + topic.slice('home'.length), payload: bytes(right), code: 'unknown_hub' }
  },
  'unknown app': (dice) => {
    const id = dice.pick([
      'The.App',
      'the.app ',
      '%zz',
      '%FF',
      '%',
      '..',
      '%2E%2E',
      '%2E%2E%2F%2E%2E',
      '__proto__',
      'constructor',
      '🔥',
      '$x',
      'a%00b',
      'x'.repeat(2000),
      dice.word(),
    ])
    const [topic, right] = dice.pick(ON_APP)
    // `confirm` repeats the id, and is looked at only after the app was found.
    return { topic: topic.replace(APP, () => id), payload: bytes(right), code: 'unknown_app' }
  },
}

/** Only MQTT 5 tells of a live message that it is retained. */
const RETAINED: Make = (dice) => {
  const [topic, right] = dice.pick(ANY)
  return { topic, payload: bytes(right), code: 'retained', retain: true }
}

/** An endless supply; what only MQTT 5 can carry is left out unless `five`. */
export function badInputs(seed: number, five: boolean): () => BadInput {
  const dice = new Dice(seed)
  const kinds = Object.entries<Make>(five ? { ...KINDS, retained: RETAINED } : KINDS)
  return () => {
    const [kind, make] = dice.pick(kinds)
    return { kind, ...make(dice) }
  }
}
