/** A reverse proxy in front of hubs, for HTTP and WebSocket: what stands behind a path can be changed while it runs. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { onTestFinished } from 'vitest'

export class Gateway {
  readonly url: string
  readonly #behind: Map<string, string>

  private constructor(url: string, behind: Map<string, string>) {
    this.url = url
    this.#behind = behind
  }

  /** `behind`: path (`''` for the root) → URL of the hub that answers below it. */
  static async start(behind: Readonly<Record<string, string>>): Promise<Gateway> {
    const routes = new Map(Object.entries(behind))
    const sockets = new Set<Socket>()
    const target = (incoming: IncomingMessage) => {
      const { url = '/', method, headers } = incoming
      const found = [...routes]
        .sort(([one], [other]) => other.length - one.length)
        .find(([path]) => url.startsWith(path))
      if (found === undefined) return undefined
      const [path, to] = found
      return request(new URL(url.slice(path.length), to), { method, headers, agent: false })
    }
    const server = createServer((incoming, response) => {
      const outgoing = target(incoming)
      if (outgoing === undefined) return void response.writeHead(404).end()
      outgoing.on('error', () => response.destroy())
      outgoing.on('response', (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      })
      incoming.pipe(outgoing)
    })
    server.on('connection', (socket) => {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
    })
    server.on('upgrade', (incoming, socket, head) => {
      const outgoing = target(incoming)
      if (outgoing === undefined) return void socket.destroy()
      outgoing.on('error', () => socket.destroy())
      outgoing.on('response', () => socket.destroy())
      outgoing.on('upgrade', (answer, other, first) => {
        const headers = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}`)
        socket.write(['HTTP/1.1 101 Switching Protocols', ...headers, '', ''].join('\r\n'))
        socket.write(first)
        other.write(head)
        for (const [one, end] of [
          [socket, other],
          [other, socket],
        ] as const) {
          one.pipe(end)
          one.on('error', () => end.destroy())
          one.on('close', () => end.destroy())
        }
      })
      outgoing.end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(async () => {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    })
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    return new Gateway(`http://127.0.0.1:${address.port}`, routes)
  }

  /** Lets another hub answer below a path from the next request on; what is connected stays so. */
  switch(path: string, to: string): void {
    this.#behind.set(path, to)
  }
}
