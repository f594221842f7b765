/** The formats of things that are reached or opened: hubs, brokers, topics, hosts, files; and of secrets. */
import { accept, type Format, type Parsed, refuse, text } from './format.ts'

interface UrlRules {
  readonly schemes: readonly string[]
  readonly example: string
  /** Where a user name and password belong instead. */
  readonly credentials: string
  /** May it end in a path? */
  readonly path: (scheme: string) => boolean
}

function url({ schemes, example, credentials, path }: UrlRules): Format<string> {
  const expected = `an address that begins with ${schemes.map((scheme) => `${scheme}://`).join(', ')}, such as ${example}`
  const parse = (raw: unknown): Parsed<string> => {
    if (typeof raw !== 'string' || !/^[a-z]+:\/\/[^\s/]\S*$/i.test(raw)) return refuse(expected)
    const parsed = URL.parse(raw)
    const scheme = parsed?.protocol.slice(0, -1) ?? ''
    if (parsed === null || !schemes.includes(scheme) || parsed.hostname === '') return refuse(expected)
    if (parsed.username !== '' || parsed.password !== '' || raw.includes('@')) {
      return refuse(`an address without user name or password; ${credentials}`)
    }
    if (/[?#]/.test(raw)) return refuse(`an address without ? and #, such as ${example}`)
    if (parsed.pathname.length > 1 && !path(scheme)) return refuse(`an address without a path, such as ${example}`)
    return accept(parsed.href.replace(/\/+$/, ''))
  }
  return {
    name: 'URL',
    expected,
    // An address is where people leave passwords.
    quotable: false,
    schema: { type: 'string', pattern: `^(${schemes.join('|')})://[^\\s@?#]+$` },
    parse,
    fromText: (value) => value,
    show: (value) => value,
  }
}

/** Address of a hub, without a slash at the end. */
export const hubUrl = url({
  schemes: ['http', 'https'],
  example: 'http://192.168.1.20',
  credentials: 'the hub takes an api_key only',
  path: () => true,
})

/** Address of a broker, without a slash at the end. */
export const brokerUrl = url({
  schemes: ['mqtt', 'mqtts', 'ws', 'wss'],
  example: 'mqtt://broker:1883',
  credentials: 'give them as mqtt.username and mqtt.password (or mqtt.password_file)',
  path: (scheme) => scheme.startsWith('ws'),
})

const TOPIC = 'a topic prefix such as hub2mqtt or home/apps'
const TOPIC_LIMIT = 128

/** A prefix under which all topics live: MQTT would take more, but wildcards and empty levels would never be meant. */
export const topicPrefix: Format<string> = {
  ...text({ name: 'topic', expected: TOPIC, pattern: /./ }),
  quotable: true,
  schema: { type: 'string', pattern: '^[^$/+#][^/+#]*(/[^/+#]+)*$', maxLength: TOPIC_LIMIT },
  parse: (raw) => {
    if (typeof raw !== 'string' || raw === '') return refuse(TOPIC)
    if (/[+#]/.test(raw)) return refuse(`${TOPIC}, without the wildcards + and #`)
    if (raw.startsWith('$')) return refuse(`${TOPIC}, without $ at its start (such topics belong to the broker)`)
    if (raw.split('/').includes('')) {
      return refuse(`${TOPIC}, without / at its start or end and without an empty level`)
    }
    if (/[\p{Cc}\p{Cs}]/u.test(raw)) return refuse(`${TOPIC}, without control characters`)
    return Buffer.byteLength(raw) <= TOPIC_LIMIT ? accept(raw) : refuse(`${TOPIC}, at most ${TOPIC_LIMIT} bytes`)
  },
}

/** A name or address to listen on. */
export const host: Format<string> = {
  ...text({
    name: 'host',
    expected: 'a host name or IP address such as 127.0.0.1',
    pattern: /^[A-Za-z0-9.:_-]{1,255}$/,
  }),
  quotable: true,
}

/** Any line of text that a protocol takes as a name. */
export const label: Format<string> = text({
  name: 'text',
  expected: 'one line of text, at most 256 characters',
  pattern: /^[^\p{Cc}\p{Cs}]{1,256}$/u,
})

/** A bearer token: it travels in an HTTP header, which takes printable Latin-1 characters only. */
export const apiKey: Format<string> = text({
  name: 'secret',
  expected: 'the key as the hub shows it: one line of printable Latin-1 characters, without blanks around it',
  pattern: /^(?! )[\x20-\x7e\xa0-\xff]{1,4096}(?<! )$/,
})

/** A password: any characters, but a line break or another control character is a slip of copying. */
export const password: Format<string> = text({
  name: 'secret',
  expected: 'the password in one line, without control characters',
  pattern: /^[^\p{Cc}\p{Cs}]{1,4096}$/u,
})

/** A path, made absolute: in the file it counts from the file's folder, in the environment from the working folder. */
export const path: Format<string> = {
  ...text({ name: 'path', expected: 'the path of a file', pattern: /^[^\p{Cc}]+$/u }),
  opens: true,
  parse: (raw, { resolvePath }) =>
    typeof raw === 'string' && /^[^\p{Cc}]+$/u.test(raw) ? accept(resolvePath(raw)) : refuse('the path of a file'),
}
