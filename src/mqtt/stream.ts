/** Opens byte streams for MQTT, without Nagle's algorithm, with one write per event loop turn. */
import { connect as connectTcp } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import type { BrokerOptions, Pem } from './types.ts'

type Tls = Pick<BrokerOptions, 'ca' | 'cert' | 'key' | 'rejectUnauthorized' | 'connectTimeoutMs'>

/** Returns a function that opens the stream, so that the caller can add listeners before any event. */
export async function streamOpener(address: string, tls: Tls): Promise<() => Duplex> {
  const url = new URL(address)
  // In a URL, an IPv6 address has brackets.
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = Number(url.port) || (url.protocol === 'mqtts:' ? 8883 : 1883)
  switch (url.protocol) {
    case 'mqtt:':
      return () => oncePerTurn(connectTcp({ host, port }).setNoDelay(true))
    case 'mqtts:':
      return () =>
        oncePerTurn(connectTls({ ...tlsOptions(tls), host, port, servername: servername(host) }).setNoDelay(true))
    case 'ws:':
    case 'wss:':
      return await webSocketOpener(url, tls)
    default:
      throw new TypeError(`MQTT over ${url.protocol} is not supported`)
  }
}

const tlsOptions = ({ ca, cert, key, rejectUnauthorized = true }: Tls) => ({
  ...{ ca: contentOf(ca), cert: contentOf(cert), key: contentOf(key) },
  rejectUnauthorized,
})

const contentOf = (pem: Pem | undefined) => (typeof pem === 'function' ? pem() : pem)

/** Returns the name for SNI; empty for an IP address, which SNI does not permit. */
const servername = (host: string) => (/^[\d.]+$|:/.test(host) ? '' : host)

/**
 * Keeps a stream corked until the event loop has handled all pending events. Many packets then share one system call,
 * the most expensive part of sending. mqtt.js itself corks for each packet, until the next tick.
 */
function oncePerTurn<S extends Duplex>(stream: S): S {
  const cork = stream.cork.bind(stream)
  let waiting = false
  stream.cork = () => {
    cork()
    if (waiting) return
    waiting = true
    cork()
    setImmediate(() => {
      waiting = false
      stream.uncork()
    })
  }
  return stream
}

/** Opens a WebSocket. `ws` is loaded on demand, and disables Nagle's algorithm itself. */
async function webSocketOpener(url: URL, options: Tls): Promise<() => Duplex> {
  const { createWebSocketStream, WebSocket } = await import('ws')
  const address = new URL(url)
  address.username = ''
  address.password = ''
  const tls = url.protocol === 'wss:' ? tlsOptions(options) : {}
  return () => {
    const socket = new WebSocket(address, ['mqtt'], {
      ...tls,
      perMessageDeflate: false,
      handshakeTimeout: options.connectTimeoutMs ?? 10_000,
    })
    const stream = createWebSocketStream(socket)
    // Join the pieces of a packet, because mqtt.js writes about six of them, and each would be a separate frame.
    stream._writev = (pieces, done) => stream._write(Buffer.concat(pieces.map(({ chunk }) => chunk)), 'binary', done)
    socket.once('close', () => stream.destroy())
    return oncePerTurn(stream)
  }
}
