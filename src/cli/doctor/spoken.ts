import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { WebSocket } from 'ws'
import { fromUrl } from '../../base/hosts.ts'

/** Time within which a port in the local network answers. */
const TIMEOUT_MS = 2_000
/** A CONNECT packet: MQTT 3.1.1, clean session, no client id, no login. */
const CONNECT = Buffer.from([0x10, 12, 0, 4, ...Buffer.from('MQTT'), 4, 2, 0, 10, 0, 0])
const CONNACK = 0x20
/** The first byte of an answer of a web server, which begins with `HTTP/`. */
const HTTP = 0x48

const PORTS: Readonly<Record<string, number>> = { 'mqtt:': 1883, 'mqtts:': 8883, 'http:': 80, 'ws:': 80 }

/** Detects the protocol that a port speaks, without logging in. */
export async function protocolAt(address: string): Promise<'MQTT' | 'TLS' | 'HTTP' | undefined> {
  const { protocol, hostname, port } = new URL(address)
  const at = { host: fromUrl(hostname), port: Number(port) || (PORTS[protocol] ?? 443) }
  let answer = 0
  const [, tls] = await Promise.all([
    first(connectTcp(at), TIMEOUT_MS, (socket, resolve) => {
      socket.write(CONNECT)
      socket.once('data', ([type = 0]) => {
        answer = type
        resolve(true)
      })
    }),
    // Accept any certificate, because no secret is sent.
    first(
      connectTls({ ...at, rejectUnauthorized: false, servername: isIP(at.host) === 0 ? at.host : '' }),
      TIMEOUT_MS,
      (socket, resolve) => socket.once('secureConnect', () => resolve(true)),
    ),
  ])
  if (answer === CONNACK) return 'MQTT'
  if (tls) return 'TLS'
  return answer === HTTP ? 'HTTP' : undefined
}

/** Resolves to `false` if the socket fails, closes or times out before `listen` has a result. Closes the socket. */
export async function first<S extends Socket | WebSocket>(
  socket: S,
  ms: number,
  listen: (socket: S, resolve: (is: boolean) => void) => unknown,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const late = setTimeout(() => resolve(false), ms)
  socket.on('error', () => resolve(false)).once('close', () => resolve(false))
  listen(socket, resolve)
  try {
    return await promise
  } finally {
    clearTimeout(late)
    if ('terminate' in socket) socket.terminate()
    else socket.destroy()
  }
}
