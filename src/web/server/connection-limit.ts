/** Bounds a server's connections so that a new one always gets in: the one that has been idle longest ends for it. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** Keeps at most `most` connections. */
export function boundConnections(server: Server, most: number): void {
  /** Without a question under way, the longest idle first. */
  const idle = new Set<Socket>()
  const busy = new Set<Socket>()
  const forget = (socket: Socket) => idle.delete(socket) || busy.delete(socket)
  server.on('connection', (socket: Socket) => {
    idle.add(socket)
    socket.once('close', () => forget(socket))
    if (idle.size + busy.size <= most) return
    // The new one is idle too: where it is the only one, the one that has been answered for longest ends.
    const [longest] = idle.size > 1 ? idle : busy
    if (longest === undefined) return
    forget(longest)
    longest.destroy()
  })
  // Who takes it over bounds it.
  server.on('upgrade', ({ socket }) => forget(socket))
  server.on('request', ({ socket }, response) => {
    idle.delete(socket)
    busy.add(socket)
    response.once('close', () => {
      if (busy.delete(socket) && !socket.destroyed) idle.add(socket)
    })
  })
}
