/** Ports to listen on, where the usual one may be taken. */
import { once } from 'node:events'
import { createServer } from 'node:net'

const TRIES = 100

/** The first port from `wanted` on that is free on `host`, with 0 any; `wanted` itself if none of the next hundred is. */
export async function firstFreePort(host: string, wanted: number): Promise<number> {
  for (let port = wanted; port < Math.min(wanted + TRIES, 65_536); port += 1) {
    const free = await freePort(host, port)
    if (free !== undefined) return free
  }
  return wanted
}

async function freePort(host: string, port: number): Promise<number | undefined> {
  try {
    await using server = createServer()
    await once(server.listen({ host, port, exclusive: true }), 'listening')
    const at = server.address()
    return typeof at === 'object' ? at?.port : undefined
  } catch {
    return undefined
  }
}
