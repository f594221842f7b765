import { isLocalTimeKnown } from '../base/cron.ts'
import { isLoopback } from '../base/hosts.ts'
import type { Config } from './options.ts'

interface Rule {
  /** The options that the rule checks. The rule is skipped if one of these options has a mistake. */
  readonly paths: readonly string[]
  /** Whether the configuration is used even if the rule is broken. */
  readonly isWarning?: true
  /** Returns the message, or `false` if the rule is met. */
  readonly check: (config: Omit<Config, 'hubs'>, isWrong: IsWrong) => string | false
}

type IsWrong = (path: string) => boolean

const useTls = (urls: readonly string[] | null) => urls?.some((url) => /^(mqtts|wss):/.test(url)) === true

const mistake = (paths: Rule['paths'], check: Rule['check']): Rule => ({ paths, check })
const warning = (paths: Rule['paths'], check: Rule['check']): Rule => ({ paths, check, isWarning: true })

const passwordNeedsName = (part: 'mqtt' | 'fleet') =>
  mistake(
    [`${part}.username`, `${part}.password`],
    ({ [part]: { username, password } }) =>
      password !== null &&
      username === null &&
      `${part}.username: missing; a password is sent only together with a user name`,
  )

/** Returns how many ways of sharing hubs are configured. Also counts options that have mistakes. */
function waysToShare({ shard, index, count, nats }: Config['fleet'], isWrong: IsWrong): number {
  const byIndex = index !== null || count !== null || isWrong('fleet.index') || isWrong('fleet.count')
  const ways = [shard !== null || isWrong('fleet.shard'), byIndex, nats.length > 0 || isWrong('fleet.nats')]
  return ways.filter(Boolean).length
}

const rules: readonly Rule[] = [
  mistake(
    ['mqtt.url', 'mqtt.embedded.host', 'mqtt.username', 'mqtt.password'],
    ({ mqtt: { url, embedded, username, password } }) =>
      url === null &&
      !isLoopback(embedded.host) &&
      (username === null || password === null) &&
      'mqtt.embedded.host: the embedded broker listens beyond this machine only with mqtt.username and mqtt.password; give both, or listen on 127.0.0.1',
  ),
  passwordNeedsName('mqtt'),
  mistake(['mqtt.cert_file', 'mqtt.key_file'], ({ mqtt: { cert_file, key_file } }) => {
    if ((cert_file === null) === (key_file === null)) return false
    const [lacking, given] = cert_file === null ? ['cert_file', 'key_file'] : ['key_file', 'cert_file']
    return `mqtt.${lacking}: missing; mqtt.${given} needs it`
  }),
  warning(
    ['mqtt.url', 'mqtt.reject_unauthorized'],
    ({ mqtt: { url, reject_unauthorized } }) =>
      useTls(url) &&
      !reject_unauthorized &&
      "mqtt.reject_unauthorized: the broker's certificate is not checked; name its authority in mqtt.ca_file instead",
  ),
  warning(
    ['mqtt.url', 'mqtt.ca_file', 'mqtt.cert_file'],
    ({ mqtt: { url, ca_file, cert_file } }) =>
      !useTls(url) &&
      (ca_file !== null || cert_file !== null) &&
      'mqtt.url: certificates are configured, but the address is not encrypted; use mqtts:// or wss://',
  ),
  warning(
    ['mqtt.base_topic', 'discovery.prefix'],
    // Other devices may have topics there that look like those of a hub.
    ({ mqtt: { base_topic }, discovery: { prefix } }) =>
      `${base_topic}/`.startsWith(`${prefix}/`) &&
      'mqtt.base_topic: this is discovery.prefix or a topic below it, where other devices publish; use another, such as hub2mqtt',
  ),
  mistake(
    ['mqtt.url'],
    ({ mqtt, fleet }, isWrong) =>
      mqtt.url === null &&
      waysToShare(fleet, isWrong) > 0 &&
      'mqtt.url: missing; the bridges of a fleet share a broker',
  ),
  mistake(
    [],
    ({ fleet }, isWrong) =>
      waysToShare(fleet, isWrong) > 1 &&
      'fleet.shard: expected one of fleet.shard, fleet.index with fleet.count, and fleet.nats',
  ),
  mistake(['fleet.index', 'fleet.count'], ({ fleet: { index, count } }) => {
    if (index === null && count === null) return false
    if (index === null || count === null) return 'fleet.index: expected together with fleet.count'
    return index >= count && `fleet.index: expected a number from 0 to ${count - 1}`
  }),
  passwordNeedsName('fleet'),
  mistake(['http.tokens'], ({ http: { tokens } }) => {
    const names = Map.groupBy(tokens.keys(), (name) => tokens.get(name)?.token)
    const same = names.values().find(({ length }) => length > 1)
    return same !== undefined && `http.tokens: ${same.join(' and ')} have the same token; give each its own`
  }),
  mistake(
    ['updates.policy', 'updates.window.start'],
    ({ updates: { policy, window } }) =>
      policy === 'window' &&
      window.start === null &&
      'updates.window.start: missing; updates.policy: window requires it',
  ),
  warning(
    ['guard.quiet_hours', 'guard.schedule', 'guard.time_zone'],
    ({ guard: { quiet_hours, schedule, time_zone } }) =>
      (quiet_hours !== null || schedule.size > 0) && time_zone === null && unknownZone('guard'),
  ),
  warning(
    ['updates.policy', 'updates.time_zone'],
    ({ updates: { policy, time_zone } }) => policy === 'window' && time_zone === null && unknownZone('updates'),
  ),
]

const unknownZone = (part: 'guard' | 'updates') =>
  !isLocalTimeKnown(process.env['TZ']) &&
  `${part}.time_zone: missing, and the time zone of this machine (TZ) is unknown, so times are in UTC; give ${part}.time_zone`

export function checkRules(config: Omit<Config, 'hubs'>, isWrong: IsWrong = () => false) {
  const lines: { readonly mistakes: string[]; readonly warnings: string[] } = { mistakes: [], warnings: [] }
  for (const { paths, isWarning, check } of rules) {
    const line = !paths.some(isWrong) && check(config, isWrong)
    if (line !== false) (isWarning ? lines.warnings : lines.mistakes).push(line)
  }
  return lines
}
