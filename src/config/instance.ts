/** Tells apart processes of one machine that would otherwise be the same to others. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemCode } from '../base/failures.ts'

/** More instances than anyone runs. Further instances share the last number. */
const MAX_INSTANCES = 64

export interface Instance extends AsyncDisposable {
  /** 0 for the first process, 1 for one that starts while the first runs, and so on. */
  readonly number: number
}

/**
 * Claims the lowest number that no other process of this machine holds under `name`. It is free again when the process
 * ends, however it ends, so that a restart gets the same one. Where the system refuses local sockets, it is 0.
 */
export async function claimInstance(name: string, platform: NodeJS.Platform = process.platform): Promise<Instance> {
  const mark = createHash('sha256').update(name).digest('hex').slice(0, 24)
  for (let number = 0; number < MAX_INSTANCES; number += 1) {
    const server = await hold(pathOf(`hub2mqtt-${mark}-${number}`, platform))
    if (server === 'refused') return unheld(0)
    if (server !== 'taken') return { number, [Symbol.asyncDispose]: async () => void server.close() }
  }
  return unheld(MAX_INSTANCES)
}

const unheld = (number: number): Instance => ({ number, [Symbol.asyncDispose]: async () => undefined })

/** Linux and Windows have names that end with the process; elsewhere a crash leaves a file behind. */
function pathOf(name: string, platform: NodeJS.Platform): string {
  if (platform === 'linux') return `\0${name}`
  return platform === 'win32' ? `\\\\.\\pipe\\${name}` : join(tmpdir(), `${name}.sock`)
}

async function hold(path: string): Promise<Server | 'taken' | 'refused'> {
  const held = await listen(path)
  if (held !== 'taken' || !path.startsWith('/') || (await isAlive(path))) return held
  rmSync(path, { force: true })
  return await listen(path)
}

async function listen(path: string): Promise<Server | 'taken' | 'refused'> {
  const server = createServer((socket) => socket.destroy()).unref()
  const failed = await once(server.listen({ path, exclusive: true }), 'listening').then(() => undefined, systemCode)
  return failed === undefined ? server : failed === 'EADDRINUSE' ? 'taken' : 'refused'
}

/** Whether a process still listens there. */
async function isAlive(path: string): Promise<boolean> {
  const socket = connect(path)
  const failed = await once(socket, 'connect').then(() => undefined, systemCode)
  socket.destroy()
  return failed === undefined
}
