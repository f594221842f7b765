/** Creates temporary resources of a test, which are removed when the test ends. */
import { mkdtempDisposableSync } from 'node:fs'
import type { AddressInfo, Server, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** Creates an empty folder. With `afterAll` as `atEnd`, the folder exists for all tests of the file or suite. */
export function temporaryFolder(atEnd: (remove: () => void) => void = onTestFinished): string {
  const { path, remove } = mkdtempDisposableSync(join(tmpdir(), 'hub2mqtt-'))
  atEnd(remove)
  return path
}

export async function listening(server: Server, port = 0): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}
