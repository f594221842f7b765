/** A reverse proxy that puts a page below a prefix, as nginx does: plain requests and WebSockets. */
import { createServer, type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'

export interface PrefixProxy extends AsyncDisposable {
  readonly port: number
}

/** Passes on what is below the prefix, under its own `Host`. */
export async function prefixProxy(target: number, prefix: string): Promise<PrefixProxy> {
  const below = ({ url = '' }: IncomingMessage) => (url.startsWith(prefix) ? url.slice(prefix.length - 1) : undefined)
  const server = createServer((asked, answer) => {
    const path = below(asked)
    if (path === undefined) {
      answer.writeHead(404).end()
      return
    }
    const { method = 'GET', headers } = asked
    const passed = request({ host: '127.0.0.1', port: target, path, method, headers }, (got) => {
      answer.writeHead(got.statusCode ?? 502, got.headers)
      got.pipe(answer)
    })
    passed.on('error', () => answer.destroy())
    asked.pipe(passed)
  })
  server.on('upgrade', (asked: IncomingMessage, socket) => {
    const onward = connect(target, '127.0.0.1', () => {
      const lines = Object.entries(asked.headers).map(([name, value]) => `${name}: ${String(value)}\r\n`)
      onward.write(`GET ${below(asked) ?? '/'} HTTP/1.1\r\n${lines.join('')}\r\n`)
      onward.pipe(socket).pipe(onward)
    })
    const end = () => {
      onward.destroy()
      socket.destroy()
    }
    onward.on('error', end)
    socket.on('error', end)
    socket.on('close', end)
  })
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
