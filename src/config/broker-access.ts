/** How the configured broker is reached and what is presented to it, the same for everyone who connects. */
import { camelKeys } from '../base/camel-keys.ts'
import { reachable } from '../base/hosts.ts'
import { readPlain } from '../base/read-plain.ts'
import type { LinkOptions } from '../mqtt/types.ts'
import type { Config } from './options.ts'

type Mqtt = Config['mqtt']
export type BrokerAccess = Pick<
  LinkOptions,
  'urls' | 'username' | 'password' | 'protocol' | 'ca' | 'cert' | 'key' | 'rejectUnauthorized' | 'keepaliveMs'
>

export function brokerAccess(mqtt: Mqtt, urls: readonly string[]): BrokerAccess {
  const { username, password, protocol, caFile, certFile, keyFile, rejectUnauthorized, keepalive } = camelKeys(mqtt)
  const pem = (path: string | undefined) => (path === undefined ? undefined : readPlain(path))
  return {
    urls,
    username,
    password,
    // Without a broker of one's own it is the embedded one, which speaks no other.
    protocol: mqtt.url === null && protocol === 'auto' ? '3.1.1' : protocol,
    ca: pem(caFile),
    cert: pem(certFile),
    key: pem(keyFile),
    rejectUnauthorized,
    keepaliveMs: keepalive,
  }
}

/** Where a running bridge has its broker, the preferred address first; none for an embedded one whose port nobody chose. */
export function brokerUrls({
  url,
  embedded: { host, port },
}: {
  readonly url: readonly string[] | null
  readonly embedded: Pick<Mqtt['embedded'], 'host' | 'port'>
}): readonly string[] {
  if (url !== null) return url
  if (port === 0) return []
  const name = reachable(host)
  return [`mqtt://${name.includes(':') ? `[${name}]` : name}:${port}`]
}
