/** A hub that itself answers only pings, and a client for its endpoints. The test provides all other answers. */
import type { RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import type { Json } from '../../src/base/json.ts'
import { type EndpointCall, readEndpoint } from '../../src/hub/endpoints.ts'
import { clientOf, serve } from './support.ts'

export interface Caller {
  readonly call: (line: string, more?: Partial<EndpointCall>) => Promise<Json>
  /** The method, path, body and key of each request, except pings. */
  readonly seen: string[]
}

export async function client(answer: RequestListener): Promise<Caller> {
  const seen: string[] = []
  const url = await serve((request, response) => {
    if (request.url?.endsWith('/system/ping')) return void response.setHeader('x-homey-id', 'a').end('true')
    void text(request).then((body) => {
      seen.push(`${request.method} ${request.url} ${body} ${request.headers.authorization}`)
      answer(request, response)
    })
  })
  const hub = clientOf(url, { hasApp: () => false })
  onTestFinished(() => hub.close())
  const call: Caller['call'] = (line, more = {}) => {
    const [method = '', item = '', path] = line.split(' ')
    if (method !== 'GET' && method !== 'POST' && method !== 'PUT' && method !== 'DELETE') throw new Error(method)
    return hub.callEndpoint(readEndpoint({ section: 'manager', item, method, path, ...more }))
  }
  return { call, seen }
}
