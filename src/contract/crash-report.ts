/**
 * The evidence of a crash as text for the app's developer. It contains no personal data: figures, versions and code
 * locations appear only if they have that form, and of the message only words that are usual in such messages.
 */
import { constants } from 'node:os'
import { type Crash, type Happening, MAX_OTHERS, together } from './crash.ts'

const MOST_ROWS = 24
const UNKNOWN = '…'

export function reportOf(app: string, crash: Crash): string {
  const { at, reason, version, message, stack_head } = crash
  const name = isAppId(app) ? app : 'an app'
  const words = messageOf(message)
  const frames = stack_head?.split('\n').flatMap((line) => frameOf(line) ?? []) ?? []
  const sentence = sentenceOf(app, crash)
  const parts = [
    `# Crash of ${name} ${versionOf(version)}`,
    `${at.slice(0, 19).replace('T', ' ')} UTC, reason: \`${reason}\``,
    words === '' ? undefined : `> ${words}`,
    frames.length === 0 ? undefined : ['```', ...frames, '```'].join('\n'),
    sentence && `${sentence}.`,
    table(['', ''], figuresOf(crash)),
    usageOf(crash.samples),
    beforeOf(app, crash),
    `Words of the message that could be personal are left out (${UNKNOWN}). Made by hub2mqtt.`,
  ]
  return `${parts.filter((part) => part !== undefined).join('\n\n')}\n`
}

/** Other apps that crashed later are known only by their count. */
function sentenceOf(app: string, { at, before, others_crashed }: Crash): string | undefined {
  const own = Date.parse(at)
  const since = own - 10 * 60_000
  const known = new Map<string, number>()
  for (const { what, app: other, at } of before) {
    const isAmong = what === 'crashed' && other !== null && other !== app && others_crashed.includes(other)
    if (isAmong && Date.parse(at) >= since) known.set(other, Date.parse(at))
  }
  const later = others_crashed.filter((id) => !known.has(id)).map(() => own)
  const shown = before.map((one) => ({ ...one, to: versionOf(one.to) }))
  const sentence = together([own, ...known.values(), ...later], shown)
  return others_crashed.length < MAX_OTHERS ? sentence : sentence && `At least ${sentence}`
}

function figuresOf({ firmware, uptime_seconds, app_uptime_seconds, exit_code, exit_signal, hub, guard }: Crash) {
  const of = (free: number | null, total: number | null) =>
    free === null ? undefined : `${mebibytes(free)}${total === null ? '' : ` of ${mebibytes(total)}`}`
  const flag = (said: boolean | null) => (said === null ? undefined : said ? 'yes' : 'no')
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['Firmware of the hub', firmware === null ? undefined : versionOf(firmware)],
    ['The hub was up for', uptime_seconds === null ? undefined : lasting(uptime_seconds)],
    ['The app was up for', app_uptime_seconds === null ? undefined : lasting(app_uptime_seconds)],
    ['Exit code', exit_code === null ? undefined : String(exit_code)],
    ['Exit signal', exit_signal !== null && SIGNAL.test(exit_signal) ? exit_signal : undefined],
    ['Free memory of the hub', hub === null ? undefined : of(hub.memory_free_bytes, hub.memory_total_bytes)],
    ['Free storage of the hub', hub === null ? undefined : of(hub.storage_free_bytes, hub.storage_total_bytes)],
    ['Load of the hub', hub === null || hub.load_1m === null ? undefined : `${hub.load_1m} on ${hub.cpus ?? '?'} CPUs`],
    [
      'Temperature of the hub',
      hub === null || hub.temperature_celsius === null ? undefined : `${hub.temperature_celsius} °C`,
    ],
    ['Under-voltage', hub === null ? undefined : flag(hub.undervoltage)],
    ['Throttled', hub === null ? undefined : flag(hub.throttled)],
    ['Guardian', guard === null ? undefined : `${guard.state}, ${guard.restarts} restarts`],
  ]
  return rows.flatMap(([what, value]) => (value === undefined ? [] : [[what, value]]))
}

function usageOf(samples: Crash['samples']): string | undefined {
  const step = Math.ceil(samples.length / MOST_ROWS)
  const shown = samples.filter((_, i) => (samples.length - 1 - i) % step === 0)
  if (shown.length === 0) return undefined
  const rows = shown.map(([seconds, cpu, memory]) => [
    lasting(seconds),
    cpu === null ? '' : `${cpu} %`,
    memory === null ? '' : mebibytes(memory),
  ])
  return `## Before the crash\n\n${table(['Before', 'CPU', 'Memory'], rows)}`
}

function beforeOf(app: string, { at, before }: Crash): string | undefined {
  const lines = before.slice(0, MOST_ROWS).map((one) => {
    const seconds = Math.max(0, Math.round((Date.parse(at) - Date.parse(one.at)) / 1000))
    return `- ${lasting(seconds)} before: ${wordsOf(app, one)}`
  })
  return lines.length === 0 ? undefined : `## What happened in the 24 hours before\n\n${lines.join('\n')}`
}

function wordsOf(app: string, { what, app: of, from, to, by }: Happening): string {
  const whose = of === null ? 'the hub' : of === app ? 'this app' : 'another app'
  switch (what) {
    case 'hub_restarted':
      return 'the hub restarted'
    case 'firmware_updated':
      return `the hub got firmware ${versionOf(to)}`
    case 'command':
      return `command \`${to !== null && COMMAND.test(to) ? to : UNKNOWN}\` for ${whose}${by === 'guard' ? ' by the guardian' : ''}`
    case 'setting':
      return `a setting of ${whose} was changed`
    case 'updated':
      return of === app ? `this app was updated from ${versionOf(from)} to ${versionOf(to)}` : 'another app was updated'
    default:
      return `${whose} ${what === 'crashed' ? '' : 'was '}${what}`
  }
}

const SIGNAL = /^SIG[A-Z0-9]{2,8}$/
const COMMAND = /^[a-z-]{1,32}$/
const VERSION = /^\d{1,5}(?:\.\d{1,5}){0,2}(?:-(?:alpha|beta|rc)(?:\.\d{1,5})?)?$/
const versionOf = (said: string | null) => (said !== null && VERSION.test(said) ? said : '(unknown version)')

/** `com.athom.hue`, but not an email or IP address. */
function isAppId(id: string): boolean {
  const [first = '', ...others] = id.split('.')
  const isPlain = (part: string) => /^[a-z0-9_-]{1,64}$/i.test(part)
  return /^[a-z]{2,24}$/.test(first) && others.length > 0 && others.length < 6 && others.every(isPlain)
}

/** Words in the messages of Node.js, Python and the hub. */
const WORDS = new Set(
  `a after already an and any are argument arguments array as assertion async at attribute available await be because been
before body boolean buffer by bytes call called callback can cannot can't circular class closed code connect connection
constructor core cpu data defined destroyed did directory does doesn't driver during empty end enough error event exceeded
exception exist exists exit exited expected failed fatal fetch file first flow for found from function get handle has have
header heap hub in index initialized input instance invalid is it iterable json key killed length limit line list loaded lost
max maximum memory memwarns message method missing module more must near network no non not null number object of offline on
only open operation option or out package parameter parse parsing path permission position process promise properties
property python range reached read reading recursion reference refused rejected rejection request require required reset
response returned running set setting should size socket some stack start started state status stream string structure such
supported syntax the this time timed timeout timer to token too many type unable uncaught undefined unexpected unhandled
unknown unloaded unreachable unsupported use used valid value variable warning was were when while with without write
wrong`.split(/\s/),
)
const CODES = new Set([...Object.keys(constants.errno), 'ENOTFOUND', 'EAI_AGAIN', 'HTTP', 'TLS', 'JSON'])
const ERROR_CLASS = /^(?:[A-Z][A-Za-z]{1,40})?(?:Error|Exception)$/
const MARKS = /[^\p{L}\p{N}_.'@-]+/u

/** The lines above the stack, without words that could be personal. */
function messageOf(message: string | null): string {
  const lines = message?.split('\n') ?? []
  const end = lines.findIndex((line) => frameOf(line) !== undefined)
  const head = lines.slice(0, end === -1 ? 3 : Math.min(end, 3)).join(' ')
  const words = head.split(MARKS).filter((word) => word !== '')
  const shown = words.map((word) => (isPlainWord(word.replaceAll("'", '')) || isPlainWord(word) ? word : UNKNOWN))
  return shown.filter((word, i) => word !== UNKNOWN || shown[i - 1] !== UNKNOWN).join(' ')
}

function isPlainWord(word: string): boolean {
  const bare = word.endsWith('.') ? word.slice(0, -1) : word
  return WORDS.has(bare.toLowerCase()) || CODES.has(bare) || SIGNAL.test(bare) || ERROR_CLASS.test(bare)
}

/**
 * `at Device.onInit (drivers/lamp/device.js:12:5)`, with the location in the app only; `undefined` if no stack frame.
 */
function frameOf(line: string): string | undefined {
  const bare = line.trim()
  if (bare.startsWith('File "')) {
    const [, path = '', rest = ''] = bare.split('"')
    const [number = '', name = ''] = rest.replace(', line ', '').split(', in ')
    return `File ${placeIn(path, number)}${identifier(name)}`
  }
  if (!bare.startsWith('at ')) return undefined
  const open = bare.lastIndexOf('(')
  const place = bare.slice(open === -1 ? 3 : open + 1).replace(')', '')
  const [column = '', row = '', ...path] = place.split(':').reverse()
  const name = open === -1 ? '' : identifier(bare.slice(3, open))
  return `at ${placeIn(path.reverse().join(':'), `${row}:${column}`)}${name}`
}

function placeIn(path: string, numbers: string): string {
  const parts = path.split(/[/\\]/)
  const module = parts.lastIndexOf('node_modules')
  const shown = parts.slice(module !== -1 ? module : path.startsWith('/app/') ? 2 : -1)
  // Packages have dots in their names, but hardly as many as the ids of apps, or as addresses.
  const most = module === -1 ? 0 : 1
  const plain = shown.map((part) => (isPlainPart(part.replace(FILE, ''), most) ? part : UNKNOWN)).join('/')
  return `${FILE.test(path) ? plain : UNKNOWN}:${/^[\d:]{1,16}$/.test(numbers) ? numbers : UNKNOWN}`
}

const FILE = /\.(?:[cm]?[jt]sx?|py|json)$/

function isPlainPart(part: string, dots: number): boolean {
  return /^@?[\w-][\w.-]{0,60}$/.test(part) && part.split('.').length - 1 <= dots && hasFewDigits(part, 4)
}

/** What has more may be a phone number, or a part of a key. */
const hasFewDigits = (text: string, most: number) => text.split(/\d/).length - 1 <= most

function identifier(said: string): string {
  const [bare = ''] = said.split(' [as ')
  const names = bare.split(' ').filter((word) => !['', 'async', 'new', 'get', 'set'].includes(word))
  const [name = ''] = names
  if (name === '') return ''
  // What has more dots may be the id of an app.
  const isShort = name.split('.').length <= 2 && hasFewDigits(name, 2)
  const isPlain = names.length === 1 && /^[A-Za-z_$<][\w$.<>#]{0,60}$/.test(name) && isShort
  return ` in ${isPlain ? name : UNKNOWN}`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string | undefined {
  if (rows.length === 0) return undefined
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

const mebibytes = (bytes: number) => `${(bytes / 1024 ** 2).toFixed(1)} MiB`

/** Formats a duration: `2 d 3 h`, `4 min`. */
function lasting(seconds: number): string {
  const units = [
    ['d', 86_400],
    ['h', 3600],
    ['min', 60],
    ['s', 1],
  ] as const
  const [largest, next] = units.slice(units.findIndex(([, size]) => seconds >= size || size === 1))
  if (largest === undefined) return ''
  const whole = Math.floor(seconds / largest[1])
  const rest = next === undefined ? 0 : Math.floor((seconds - whole * largest[1]) / next[1])
  return `${whole} ${largest[0]}${rest === 0 ? '' : ` ${rest} ${next?.[0]}`}`
}
