/** The byte streams below MQTT: TCP, TLS and WebSocket, each with Nagle's algorithm off and written once a turn. */
import { connect as connectTcp } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { BrokerOptions } from './types.ts'

type Target = Pick<BrokerOptions, 'url' | 'ca' | 'cert' | 'key' | 'rejectUnauthorized' | 'connectTimeoutMs'>

const defaultPorts: Record<string, number> = { 'mqtt:': 1883, 'mqtts:': 8883 }

/** Resolves to a function that opens the stream when called, so that its user can listen before anything happens. */
export async function streamOpener(target: Target): Promise<() => Duplex> {
  const url = new URL(target.url)
  // The brackets of an IPv6 address belong to the URL, not to the address.
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = Number(url.port) || (defaultPorts[url.protocol] ?? 0)
  switch (url.protocol) {
    case 'mqtt:':
      return () => oncePerTurn(withoutNagle(connectTcp({ host, port })))
    case 'mqtts:':
      return () =>
        oncePerTurn(withoutNagle(connectTls({ ...tlsOptions(target), host, port, servername: servername(host) })))
    case 'ws:':
    case 'wss:':
      return await webSocketOpener(url, target)
    default:
      throw new TypeError(`no MQTT over ${url.protocol}`)
  }
}

function tlsOptions({ ca, cert, key, rejectUnauthorized = true }: Target): ConnectionOptions {
  return {
    rejectUnauthorized,
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  }
}

/** SNI carries names only; an address there is an error. */
const servername = (host: string) => (/^[\d.]+$|:/.test(host) ? '' : host)

/** Set at `connect`: earlier there may be no descriptor yet, and Node would then take it for done. */
function withoutNagle<S extends ReturnType<typeof connectTcp>>(socket: S): S {
  socket.once('connect', () => socket.setNoDelay(true))
  return socket
}

/**
 * mqtt.js corks a stream for each packet that it writes, until the next tick. This lets it stay corked until all that
 * the event loop has at hand is dealt with: one system call for many packets, which are the better part of their cost.
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

/** `ws` turns Nagle off by itself. It is loaded only by those who use it. */
async function webSocketOpener(url: URL, target: Target): Promise<() => Duplex> {
  const { createWebSocketStream, WebSocket } = await import('ws')
  const address = new URL(url)
  address.username = ''
  address.password = ''
  const tls = url.protocol === 'wss:' ? tlsOptions(target) : {}
  return () => {
    const socket = new WebSocket(address, ['mqtt'], {
      ...tls,
      perMessageDeflate: false,
      handshakeTimeout: target.connectTimeoutMs ?? 10_000,
    })
    const stream = createWebSocketStream(socket)
    // mqtt.js writes a packet in half a dozen pieces; each would be a frame of its own.
    stream._writev = (pieces, done) => stream._write(Buffer.concat(pieces.map(({ chunk }) => chunk)), 'binary', done)
    socket.once('close', () => stream.destroy())
    return oncePerTurn(stream)
  }
}
