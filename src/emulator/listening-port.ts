import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { systemCode } from '../base/failures.ts'
import { EmulatorOptionError } from './scopes.ts'

/** Manages the hub's port and connections. A reboot closes all connections; a hang freezes realtime connections. */
export function listeningPort(server: Server, host: string) {
  const sockets = new Set<Socket>()
  const upgraded = new Set<Duplex>()
  let hung = false

  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('upgrade', (_request, socket) => {
    upgraded.add(socket)
    socket.once('close', () => upgraded.delete(socket))
    if (hung) freeze(socket)
  })

  /** Opens the port. Resolves to its number. @throws EmulatorOptionError with the system's error `code` */
  async function listen(port: number): Promise<number> {
    try {
      await once(server.listen(port, host), 'listening')
    } catch (cause) {
      const code = systemCode(cause)
      const message = `cannot listen on ${host}:${port} (${code}); choose another with --port`
      throw Object.assign(new EmulatorOptionError(message, { cause }), { code })
    }
    const address = server.address()
    return typeof address === 'object' && address !== null ? address.port : port
  }

  /** Closes the port and all connections. Resolves when the last connection is closed. */
  async function close(): Promise<void> {
    // Ignore an error of close(), which means that the server was not listening.
    const closed = new Promise((resolve) => server.close(resolve))
    const destroyed = [...sockets].map((socket) => once(socket.destroy(), 'close'))
    await Promise.all([closed, ...destroyed])
  }

  function cutUpgraded(): void {
    for (const socket of upgraded) socket.destroy()
  }

  /** Freezes or unfreezes the realtime connections. A frozen connection transfers no data, not even pongs. */
  function hang(wanted: boolean): void {
    if (wanted === hung) return
    hung = wanted
    for (const socket of upgraded) hung ? freeze(socket) : thaw(socket)
  }

  return { connections: () => sockets.size, listen, close, cutUpgraded, hang }
}

function freeze(socket: Duplex): void {
  socket.cork()
  socket.pause()
}

function thaw(socket: Duplex): void {
  socket.uncork()
  socket.resume()
}
