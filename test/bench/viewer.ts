/** A client that reads the live channel, like an open page. */
import { once } from 'node:events'
import { WebSocket } from 'ws'

export class Viewer implements AsyncDisposable {
  readonly #socket: WebSocket

  private constructor(socket: WebSocket) {
    this.#socket = socket
  }

  static async open(port: number): Promise<Viewer> {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/api/live`)
    await once(socket, 'message')
    socket.resume()
    return new Viewer(socket)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close()
    await once(this.#socket, 'close')
  }
}
