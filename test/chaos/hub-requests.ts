/** Describes requests in the notation of `Sent.hubRequest`. */
import type { RequestRecord } from '../../src/emulator/hub.ts'
import type { HubRequest } from './history.ts'

export function hubRequestsOf(requests: readonly RequestRecord[]): HubRequest[] {
  return requests
    .filter(({ via }) => via === 'rest')
    .map((request) => ({
      at: request.at,
      hubRequest: notationOf(request),
      status: request.status,
      executed: request.executed === true,
    }))
}

/** Returns a request in the notation of `Sent.hubRequest`; `null` if the request changes nothing. */
function notationOf({ method, operation, path, body }: RequestRecord): string | null {
  if (operation === undefined || method === 'GET') return null
  const [id = '', , name = ''] = (path.split('/app/')[1] ?? '').split('?')[0]?.split('/').map(decodeURIComponent) ?? []
  const fields = new Map<string, unknown>(typeof body === 'object' && body !== null ? Object.entries(body) : [])
  if (operation === 'say') return `say ${String(fields.get('text'))}`
  if (operation === 'installFromAppStore') return `installFromAppStore ${String(fields.get('id'))}`
  return `${operation} ${id}${name === '' ? '' : ` ${name}`}`
}
