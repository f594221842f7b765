/** Rules about combinations of options. */
import { isLoopback } from '../base/hosts.ts'
import type { Config } from './options.ts'

interface Rule {
  /** The options that it checks; it is skipped if one of them has a mistake. */
  readonly paths: readonly string[]
  readonly severity: 'mistake' | 'warning'
  /** The mistake, or `undefined`. */
  readonly check: (config: Omit<Config, 'hubs'>) => string | undefined
}

const useTls = (urls: readonly string[] | null) => urls?.some((url) => /^(mqtts|wss):/.test(url)) === true

const passwordNeedsName = (part: 'mqtt' | 'fleet'): Rule => ({
  paths: [`${part}.username`, `${part}.password`],
  severity: 'mistake',
  check: ({ [part]: { username, password } }) =>
    password !== null && username === null
      ? `${part}.username: missing; a password is sent only together with a user name`
      : undefined,
})

export const rules: readonly Rule[] = [
  {
    paths: ['mqtt.url', 'mqtt.embedded.host', 'mqtt.username', 'mqtt.password'],
    severity: 'mistake',
    check: ({ mqtt }) =>
      mqtt.url === null && !isLoopback(mqtt.embedded.host) && (mqtt.username === null || mqtt.password === null)
        ? 'mqtt.embedded.host: the embedded broker listens beyond this machine only with mqtt.username and mqtt.password; give both, or listen on 127.0.0.1'
        : undefined,
  },
  passwordNeedsName('mqtt'),
  {
    paths: ['mqtt.cert_file', 'mqtt.key_file'],
    severity: 'mistake',
    check: ({ mqtt }) => {
      if ((mqtt.cert_file === null) === (mqtt.key_file === null)) return undefined
      const [lacking, given] = mqtt.cert_file === null ? ['cert_file', 'key_file'] : ['key_file', 'cert_file']
      return `mqtt.${lacking}: missing; mqtt.${given} needs it beside it`
    },
  },
  {
    paths: ['mqtt.url', 'mqtt.reject_unauthorized'],
    severity: 'warning',
    check: ({ mqtt }) =>
      useTls(mqtt.url) && !mqtt.reject_unauthorized
        ? "mqtt.reject_unauthorized: the broker's certificate is not checked; name its authority by mqtt.ca_file instead"
        : undefined,
  },
  {
    paths: ['mqtt.url', 'mqtt.ca_file', 'mqtt.cert_file'],
    severity: 'warning',
    check: ({ mqtt }) => {
      if (useTls(mqtt.url) || (mqtt.ca_file === null && mqtt.cert_file === null)) return undefined
      return 'mqtt.url: certificates are given but the address is not encrypted; use mqtts:// or wss://'
    },
  },
  {
    paths: ['mqtt.url', 'fleet.shard', 'fleet.index', 'fleet.count', 'fleet.nats'],
    severity: 'mistake',
    check: ({ mqtt, fleet }) =>
      mqtt.url === null && (fleet.shard !== null || fleet.index !== null || fleet.nats.length > 0)
        ? 'mqtt.url: missing; the bridges of a fleet share a broker'
        : undefined,
  },
  {
    paths: ['fleet.shard', 'fleet.index', 'fleet.count', 'fleet.nats'],
    severity: 'mistake',
    check: ({ fleet: { shard, index, count, nats } }) => {
      const ways = [shard !== null, index !== null || count !== null, nats.length > 0].filter(Boolean).length
      return ways > 1
        ? 'fleet.shard: expected one of fleet.shard, fleet.index with fleet.count, and fleet.nats'
        : undefined
    },
  },
  {
    paths: ['fleet.shard'],
    severity: 'mistake',
    check: ({ fleet: { shard } }) => {
      const [number = 0, of = 0] = shard?.split('/').map(Number) ?? []
      return number > of ? `fleet.shard: expected a number up to ${of}` : undefined
    },
  },
  {
    paths: ['fleet.index', 'fleet.count'],
    severity: 'mistake',
    check: ({ fleet: { index, count } }) => {
      if ((index === null) !== (count === null)) return 'fleet.index: expected together with fleet.count'
      return index !== null && count !== null && index >= count
        ? `fleet.index: expected a number from 0 to ${count - 1}`
        : undefined
    },
  },
  passwordNeedsName('fleet'),
  {
    paths: ['updates.policy', 'updates.window.start'],
    severity: 'mistake',
    check: ({ updates }) =>
      updates.policy === 'window' && updates.window.start === null
        ? 'updates.window.start: missing; updates.policy: window needs to know when it opens'
        : undefined,
  },
]
