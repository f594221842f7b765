/** What a route is asked, and what it answers. */
import * as v from 'valibot'
import type { Access, ApiError } from './protocol.ts'

/** Who asks. */
export interface Caller {
  /** `null`: nobody who is known. */
  readonly access: Access | null
  /** For the log. */
  readonly by: string
}

export interface ApiRequest {
  readonly caller: Caller
  /** The `{parameters}` of the path, decoded. */
  readonly parameters: Readonly<Record<string, string>>
  /** The segments that stand for a `{parameter…}` at the path's end, as they were sent. */
  readonly rest: readonly string[]
  readonly body: Buffer
  /** Whether the body says that it is JSON. */
  readonly isJson: boolean
  /** Of the browser that asks. */
  readonly door: {
    login(password: string): Promise<ApiReply>
    logout(): ApiReply
    /** The headers that keep a session for longer. */
    renew(): Readonly<Record<string, string>>
  }
}

export interface ApiReply {
  readonly status: number
  /** Default: JSON. */
  readonly type?: string
  readonly body: string | Buffer
  readonly headers?: Readonly<Record<string, string>>
  /** Called when it has been sent, or cannot be. */
  readonly sent?: () => void
}

export const json = (status: number, value: unknown): ApiReply => ({ status, body: `${JSON.stringify(value)}\n` })

export function refuse(status: number, code: string, message: string, headers?: Record<string, string>): ApiReply {
  const error: ApiError = { error: { code, message } }
  return { ...json(status, error), ...(headers && { headers }) }
}

/** `undefined` for what is no JSON, or other JSON. */
export function readJson<S extends v.GenericSchema>(schema: S, body: Buffer): v.InferOutput<S> | undefined {
  try {
    const result = v.safeParse(schema, JSON.parse(body.toString('utf8')))
    return result.success ? result.output : undefined
  } catch {
    return undefined
  }
}
