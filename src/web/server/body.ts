/** Reads the body of a request. */
import type { IncomingMessage } from 'node:http'

/** `undefined` if it is larger than `most` bytes, or broken off; the rest is not read then. */
export async function readBody(request: IncomingMessage, most: number): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > most) return undefined
  const chunks: Buffer[] = []
  let size = 0
  const whole = Promise.withResolvers<Buffer | undefined>()
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size <= most) chunks.push(chunk)
    else {
      request.pause()
      whole.resolve(undefined)
    }
  })
  request.once('end', () => whole.resolve(Buffer.concat(chunks)))
  request.once('error', () => whole.resolve(undefined))
  request.once('close', () => whole.resolve(undefined))
  return await whole.promise
}
