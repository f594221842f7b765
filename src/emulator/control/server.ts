/** The control port: HTTP on loopback, for programs on the same machine. */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { mayAsk } from '../../base/hosts.ts'
import { isRecord, parseJson } from '../../base/json.ts'
import { JSON_TYPE } from '../faults.ts'
import type { EmulatedHub } from '../hub.ts'
import { asHubError, HubError } from '../hub-error.ts'
import { readBody } from '../rest.ts'
import { fill, split } from '../routes.ts'
import { EmulatorOptionError } from '../scopes.ts'
import { CONTROL } from './table.ts'

const HOST = '127.0.0.1'

export interface Control extends AsyncDisposable {
  readonly url: string
}

/** Opens the control port of a hub; 0 takes any free one. @throws EmulatorOptionError where it cannot */
export async function openControl(hub: EmulatedHub, port: number): Promise<Control> {
  const server = createServer(async (request, response) => {
    response.on('error', () => {})
    const { status, value } = await answer(hub, request)
    response.writeHead(status, JSON_TYPE).end(`${JSON.stringify(value)}\n`)
  })
  const listening = once(server, 'listening')
  server.listen(port, HOST)
  await listening.catch((cause: unknown) => {
    throw new EmulatorOptionError(`cannot open the control port ${port}; is it taken?`, { cause })
  })
  const address = server.address()
  const bound = typeof address === 'object' && address !== null ? address.port : port
  return {
    url: `http://${HOST}:${bound}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

async function answer(hub: EmulatedHub, request: IncomingMessage): Promise<{ status: number; value: unknown }> {
  try {
    refuseStrangers(request)
    return { status: 200, value: (await perform(hub, request)) ?? null }
  } catch (thrown) {
    const refusal = asHubError(thrown)
    return { status: refusal.status, value: refusal.body() }
  }
}

/** There is no login, so a page in a browser must not get in: neither by a name that leads here, nor from its origin. */
function refuseStrangers({ headers }: IncomingMessage): void {
  if (!mayAsk(headers.host, [])) throw new HubError(421, 'misdirected', 'Only by an address or localhost')
  if (headers.origin !== undefined) throw new HubError(403, 'forbidden', 'Not for web pages')
}

async function perform(hub: EmulatedHub, request: IncomingMessage): Promise<unknown> {
  const { method, url = '' } = request
  const segments = split(url.split('?')[0] ?? '')
  for (const row of CONTROL) {
    const params = row.method === method ? fill(split(row.path), segments) : undefined
    if (params === undefined) continue
    const body = await bodyOf(request)
    return await row.perform(hub, 'options' in row.takes ? { options: body, ...params } : { ...body, ...params })
  }
  throw new HubError(404, 'not_found', 'Not Found')
}

/** An object; an empty one where nothing was sent. @throws HubError 400, 413 */
async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const upload = await readBody(request)
  if (upload instanceof HubError) throw upload
  const value = upload.trim() === '' ? {} : parseJson(upload)
  if (!isRecord(value)) throw new HubError(400, 'invalid_body', 'The body has to be a JSON object')
  return value
}
