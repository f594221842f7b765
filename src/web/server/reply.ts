import type { IncomingMessage } from 'node:http'
import type { ApiError } from './api/protocol.ts'

export interface Reply {
  readonly status: number
  readonly type?: string
  readonly body: string | Buffer
  /** Additional headers, which override the default headers. */
  readonly headers?: Readonly<Record<string, string>>
}

export const text = (status: number, body: string): Reply => ({
  status,
  type: 'text/plain; charset=utf-8',
  body: `${body}\n`,
})

export const json = (status: number, value: unknown): Reply => ({ status, body: `${JSON.stringify(value)}\n` })

export const GET_ONLY: Reply = { ...text(405, 'method not allowed: use GET or HEAD'), headers: { allow: 'GET, HEAD' } }

export function refuse(status: number, code: string, message: string, headers: Record<string, string> = {}): Reply {
  const error: ApiError = { error: { code, message } }
  return { ...json(status, error), headers }
}

export class Refusal extends Error {
  readonly reply: Reply

  constructor(...refused: Parameters<typeof refuse>) {
    super(refused[2])
    this.reply = refuse(...refused)
  }
}

export const retryAfter = (waitMs: number) => ({ 'retry-after': String(Math.ceil(waitMs / 1000)) })

export function headersOf({ status, type = 'application/json', body, headers }: Reply): Record<string, string> {
  const content = { 'content-type': type, 'content-length': String(Buffer.byteLength(body)) }
  return { ...(status !== 204 && content), ...headers }
}

/** Returns the raw path without the query. */
export const pathOf = ({ url = '/' }: IncomingMessage): string => url.split('?', 1)[0] ?? url

export const isGet = ({ method }: IncomingMessage): boolean => method === 'GET' || method === 'HEAD'

export function hasBody({ headers }: IncomingMessage): boolean {
  return 'transfer-encoding' in headers || Number(headers['content-length'] ?? 0) > 0
}
