import { connect, createServer } from 'node:net'

/** These ports are below the ephemeral ports, so the system does not assign them to other processes. */
const RANGE = { from: 10_000, size: 20_000 }
let next = Math.floor(Math.random() * RANGE.size)

export async function freePort(): Promise<number> {
  for (;;) {
    next = (next + 1) % RANGE.size
    const port = RANGE.from + next
    if (await canListen(port)) return port
  }
}

/** Starts a server. Tries again after an error, because another process may have taken a free port. */
export async function onFreePorts<T>(start: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await start()
    } catch (error) {
      if (tries === 3) throw error
    }
  }
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

export function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    const answer = (open: boolean) => {
      socket.destroy()
      resolve(open)
    }
    socket.once('connect', () => answer(true))
    socket.once('error', () => answer(false))
  })
}
