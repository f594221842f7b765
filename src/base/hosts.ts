/** Names and addresses that a program listens on, and where it can be reached from the same machine. */
import { isIP } from 'node:net'

/** Whether listening on `host` stays within this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

/** Where a listener on `host` is reached from here: an address for all interfaces is none to connect to. */
export function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}
