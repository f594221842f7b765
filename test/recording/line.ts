/** A TCP proxy between the bridge and the broker, which can cut the connection. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export class Line implements AsyncDisposable {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #isCut = false

  private constructor(port: number) {
    this.#server = createServer({ noDelay: true }, (near) => {
      near.on('error', () => undefined)
      if (this.#isCut) return void near.destroy()
      const far = connect({ port, host: '127.0.0.1', noDelay: true })
      far.on('error', () => undefined)
      for (const [from, to] of [[near, far] as const, [far, near] as const]) {
        this.#sockets.add(from)
        from.pipe(to)
        from.once('close', () => {
          this.#sockets.delete(from)
          to.destroy()
        })
      }
    })
  }

  static async to(port: number): Promise<Line> {
    const line = new Line(port)
    await new Promise<void>((resolve) => line.#server.listen(0, '127.0.0.1', resolve))
    return line
  }

  get url(): string {
    return `mqtt://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get isUsed(): boolean {
    return this.#sockets.size > 0
  }

  /** Cuts the connection without a DISCONNECT packet, so that the broker publishes the will. */
  cut(): void {
    this.#isCut = true
    for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  repair(): void {
    this.#isCut = false
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }
}
