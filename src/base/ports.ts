/** Ports to listen on, where the usual one may be taken. */
import { once } from 'node:events'
import { createServer } from 'node:net'

const TRIES = 100

/** The first port from `wanted` on that is free on `host`; `wanted` itself if none of the next hundred is, or if it is 0. */
export async function firstFreePort(host: string, wanted: number): Promise<number> {
  for (let port = wanted; port > 0 && port < Math.min(wanted + TRIES, 65_536); port += 1) {
    if (await isFree(host, port)) return port
  }
  return wanted
}

async function isFree(host: string, port: number): Promise<boolean> {
  try {
    await using server = createServer()
    await once(server.listen({ host, port, exclusive: true }), 'listening')
    return true
  } catch {
    return false
  }
}
