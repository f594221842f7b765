import * as v from 'valibot'
import { isGoodHash, isHash } from '../base/secrets.ts'
import { withoutSlashes } from '../base/text.ts'
import { fixedKeys, oneOrMore, text } from './schemas.ts'

const AUTHORITY = String.raw`(?:\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]]+)(?::\d*)?`
const PATH = String.raw`(?:/[^\s?#@]*)?`

/** Returns a pattern for a scheme in any case: `[mM][qQ]…`. Patterns in a JSON Schema cannot ignore the case. */
const scheme = (name: string) => name.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`)

interface UrlRules {
  readonly schemes: readonly string[]
  readonly withPath: readonly string[]
  readonly example: string
  /** The suffix of the error message for an address that contains a user name or password. */
  readonly credentials: string
}

/** Messages never repeat an address, because it may contain a password. */
function url({ schemes, withPath, example, credentials }: UrlRules) {
  const expected = `expected an address that begins with ${schemes.map((name) => `${name}://`).join(', ')}, such as ${example}`
  const forms = schemes.map((name) => `${scheme(name)}://${AUTHORITY}${withPath.includes(name) ? PATH : '/?'}`)
  const why = (given: string): string => {
    if (!schemes.some((name) => given.toLowerCase().startsWith(`${name}://`))) return expected
    if (given.includes('@')) return `expected an address without user name or password; ${credentials}`
    if (/[?#]/.test(given)) return `expected an address without ? and #, such as ${example}`
    if (/:\/\/[^\s/]+\/\S/.test(given)) return `expected an address without a path, such as ${example}`
    return expected
  }
  return v.pipe(
    v.string(expected),
    v.regex(new RegExp(`^(?:${forms.join('|')})$`, 'u'), ({ input }) => why(input)),
    v.check((given) => URL.canParse(given) && new URL(given).port !== '0', expected),
    v.transform((given) => withoutSlashes(new URL(given).href)),
    v.metadata({ name: 'URL' }),
  )
}

const WEB = { schemes: ['http', 'https'], withPath: ['http', 'https'] }

export const hubUrl = url({ ...WEB, example: 'http://192.168.1.20', credentials: 'the hub accepts only an api_key' })

export const publicUrl = url({
  ...WEB,
  example: 'https://home.example.org/hub2mqtt',
  credentials: 'anyone who sees the link could read them',
})

export const brokerUrl = url({
  schemes: ['mqtt', 'mqtts', 'ws', 'wss'],
  withPath: ['ws', 'wss'],
  example: 'mqtt://broker:1883',
  credentials: 'give them as mqtt.username and mqtt.password (or mqtt.password_file)',
})

const natsUrl = url({
  schemes: ['nats', 'tls'],
  withPath: [],
  example: 'nats://nats-0:4222',
  credentials: 'give them as fleet.username and fleet.password (or fleet.password_file)',
})

/** Addresses of a broker, the preferred address first. */
export const brokerUrls = oneOrMore(brokerUrl, 'expected an address such as mqtt://broker:1883, or a list of them')

/** Addresses of NATS servers. The list may be empty. */
export const natsUrls = oneOrMore(natsUrl, 'expected an address such as nats://nats-0:4222, or a list of them', 0)

export const origin = url({
  schemes: ['http', 'https'],
  withPath: [],
  example: 'http://localhost:3000',
  credentials: 'a browser does not send them with an origin',
})

const TOPIC = 'expected a topic prefix such as hub2mqtt or home/apps'
const TOPIC_BYTES = 128

const TOPIC_FAULTS: readonly (readonly [RegExp, string])[] = [
  [/[+#]/, ', without the wildcards + and #'],
  [/^\$/, ', without $ at its start (such topics belong to the broker)'],
  [/^\/|\/\/|\/$/, ', without / at its start or end and without an empty level'],
  [/[\p{Cc}\p{Cs}]/u, ', without control characters'],
]

/** A topic, or the first levels of topics. MQTT permits empty levels, but in a configuration they are mistakes. */
export const topicPrefix = v.pipe(
  v.string(TOPIC),
  v.regex(/^(?!\$)[^/+#\p{Cc}\p{Cs}]+(?:\/[^/+#\p{Cc}\p{Cs}]+)*$/u, ({ input }) => {
    return TOPIC + (TOPIC_FAULTS.find(([fault]) => fault.test(input))?.[1] ?? '')
  }),
  v.maxBytes(TOPIC_BYTES, `${TOPIC}, at most ${TOPIC_BYTES} bytes`),
  v.metadata({ name: 'topic', quotable: true }),
)

export const host = text({
  name: 'host',
  quotable: true,
  expected: 'a host name or IP address such as 127.0.0.1',
  pattern: /^[A-Za-z0-9.:_-]{1,255}$/u,
})

/** The API key is sent in an HTTP header, which permits only printable Latin-1 characters. */
export const apiKey = text({
  name: 'secret',
  expected: 'the key as the hub shows it: one line of printable Latin-1 characters, without surrounding spaces',
  pattern: /^(?! )[\x20-\x7e\xa0-\xff]{1,4096}(?<! )$/u,
})

/** Rejects control characters, such as a line break that was copied by mistake. */
export const password = text({
  name: 'secret',
  expected: 'the password in one line, without control characters',
  pattern: /^[^\p{Cc}\p{Cs}]{1,4096}$/u,
})

/** A path, relative to the configuration file's folder or, in an environment variable, to the working directory. */
export const path = text({
  name: 'path',
  expected: 'the path of a file such as /run/secrets/name',
  pattern: /^[^\p{Cc}]+$/u,
})

const PASSWORD = 'at least 8 characters in one line, or a hash as hub2mqtt hash-password prints it'

/** A password in plain text, or the output of `hub2mqtt hash-password`. */
export const pagePassword = v.pipe(
  text({ name: 'secret', expected: PASSWORD, pattern: /^[^\p{Cc}\p{Cs}]{8,4096}$/u }),
  v.check(
    (given) => !isHash(given) || isGoodHash(given),
    `expected ${PASSWORD}; a text that begins with scrypt must be a whole hash: in a shell, enclose it in single quotes`,
  ),
)

const TOKEN = 'expected {token: at-least-16-characters, access: read} or access: full'

/** Scripts send this token in an HTTP header. */
export const token = v.pipe(
  fixedKeys,
  v.strictObject(
    {
      token: v.pipe(v.string(TOKEN), v.regex(/^[\x21-\x7e]{16,512}$/u, TOKEN)),
      access: v.picklist(['full', 'read'], TOKEN),
    },
    TOKEN,
  ),
  v.readonly(),
  v.metadata({ name: 'token', secretOf: ({ token: secret }: { readonly token: string }) => secret }),
)

/** An origin that may show the page in a frame. */
export const ancestor = v.pipe(
  v.union([v.literal('self'), origin], 'expected self, or an origin such as https://dashboard.lan'),
  v.metadata({ name: 'origin' }),
)

export const address = text({
  name: 'address',
  quotable: true,
  expected: 'an IP address such as 192.168.1.10',
  pattern: /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]{1,45})$/u,
})
