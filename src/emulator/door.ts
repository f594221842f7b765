import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { EmulatorOptionError } from './scopes.ts'

/** The hub's listening port and its connections: a reboot closes them all, and a hang freezes the realtime ones. */
export class Door {
  readonly #server: Server
  readonly #host: string
  readonly #sockets = new Set<Socket>()
  readonly #upgraded = new Set<Duplex>()
  #hung = false

  constructor(server: Server, host: string) {
    this.#server = server
    this.#host = host
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    server.on('upgrade', (_request, socket) => {
      this.#upgraded.add(socket)
      socket.once('close', () => this.#upgraded.delete(socket))
      if (this.#hung) freeze(socket)
    })
  }

  /** The number of TCP connections. */
  get connections(): number {
    return this.#sockets.size
  }

  /** Opens the port and resolves with its number. @throws EmulatorOptionError with the system's error `code` */
  listen(port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const refuse = (cause: NodeJS.ErrnoException) => {
        const { code } = cause
        const message = `cannot listen on ${this.#host}:${port} (${code}); choose another by --port`
        reject(Object.assign(new EmulatorOptionError(message, { cause }), { code }))
      }
      this.#server.once('error', refuse)
      this.#server.listen(port, this.#host, () => {
        this.#server.off('error', refuse)
        const address = this.#server.address()
        resolve(typeof address === 'object' && address !== null ? address.port : port)
      })
    })
  }

  /** Closes the port and all connections; resolves when the last one is closed. */
  async shut(): Promise<void> {
    // An error of close() means that the server was not listening, which is fine.
    const shut = new Promise((resolve) => this.#server.close(resolve))
    const gone = [...this.#sockets].map((socket) => once(socket.destroy(), 'close'))
    await Promise.all([shut, ...gone])
  }

  /** Closes the realtime connections without a goodbye. */
  cutUpgraded(): void {
    for (const socket of this.#upgraded) socket.destroy()
  }

  /** Freezes realtime connections at the level of bytes: no event, no pong, no goodbye. */
  hang(hung: boolean): void {
    if (hung === this.#hung) return
    this.#hung = hung
    for (const socket of this.#upgraded) hung ? freeze(socket) : thaw(socket)
  }
}

function freeze(socket: Duplex): void {
  socket.cork()
  socket.pause()
}

function thaw(socket: Duplex): void {
  socket.uncork()
  socket.resume()
}
