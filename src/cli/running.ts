/** `hub2mqtt health`: asks the daemon's listener on this machine how it is. */
import { get } from 'node:http'
import * as v from 'valibot'
import { reachable } from '../base/hosts.ts'
import { parseJson } from '../base/json.ts'

export interface HealthAddress {
  readonly host: string
  readonly port: number
}

export interface HealthAnswer {
  readonly status: number
  readonly body: string
  /** Whether it is of a daemon, and not of another program that listens there. */
  readonly isOurs: boolean
}

const OURS = v.union([v.object({ live: v.boolean() }), v.object({ ready: v.boolean() })])

const TIMEOUT_MS = 4000
/** Far above any real answer. */
const MAX_BYTES = 1024 * 1024

/** Rejects if there is no whole answer in time. */
export function askHealth({ host, port }: HealthAddress, path: '/healthz' | '/readyz'): Promise<HealthAnswer> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    // Its own agent, since the global one may be told by the environment to use a proxy.
    const request = get({ host: reachable(host), port, path, agent: false, signal }, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        body += chunk
        if (body.length > MAX_BYTES) request.destroy(new Error('the answer is too long'))
      })
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body, isOurs: v.is(OURS, parseJson(body)) }))
    })
    request.on('error', reject)
  })
}
