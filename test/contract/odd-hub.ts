/** A minimal hub that executes requests or ignores them, and answers each write as the test requires. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { serve } from '../hub/support.ts'
import { APP } from './aim.ts'

/** Whose identity an answer shows: that of this hub, no identity, or that of another hub. */
export type Sign = 'own' | 'none' | 'other'

/** Which answers, except those to writes, show the hub's identity. */
export type Signs = 'everywhere' | 'ping' | 'nowhere'

export interface WriteAnswer {
  readonly status?: number
  readonly type?: string
  readonly body: string
}

export interface Plan {
  readonly answer: WriteAnswer
  readonly sign: Sign
  readonly executes: boolean
}

interface AppState {
  id: string
  version: string
  enabled: boolean
  autoupdate: boolean
}

export class OddHub {
  readonly url: string
  /** The number of writes that the hub received. */
  asked = 0
  executed = 0
  signs: Signs
  id = 'the-hub'
  #plan: Plan | undefined
  #apps = new Map<string, AppState>()
  #settings = new Map<string, unknown>()

  private constructor(url: string, signs: Signs) {
    this.url = url
    this.signs = signs
  }

  static async start(signs: Signs): Promise<OddHub> {
    const found: { hub?: OddHub } = {}
    const url = await serve((request, response) => {
      void text(request).then((body) => {
        if (found.hub !== undefined) found.hub.#answer(request, response, body)
      })
    })
    found.hub = new OddHub(url, signs)
    found.hub.reset()
    return found.hub
  }

  #answer(request: IncomingMessage, response: ServerResponse, body: string): void {
    const { url = '', method } = request
    if (method === 'GET') {
      const value = this.#read(url)
      const shows = this.signs === 'everywhere' || (this.signs === 'ping' && url.endsWith('/system/ping'))
      const head = { 'content-type': 'application/json', ...this.#signature(shows ? 'own' : 'none') }
      response.writeHead(value === undefined ? 404 : 200, head)
      return void response.end(JSON.stringify(value ?? { error: 'not_found' }))
    }
    this.asked += 1
    if (this.#plan === undefined) throw new Error('no write was planned')
    const { executes, sign, answer } = this.#plan
    const { status = 200, type = 'application/json' } = answer
    if (executes) this.#execute(request, body)
    response.writeHead(status, { ...(type !== '' && { 'content-type': type }), ...this.#signature(sign) })
    response.end(status === 204 ? undefined : answer.body)
  }

  /** Sets how the next writes are handled, and resets the apps. `enabled` is the state of the tested app. */
  reset(plan?: Plan, enabled = true): void {
    this.#plan = plan
    this.asked = 0
    this.executed = 0
    const app = (id: string): AppState => ({ id, version: '1.0.0', enabled: true, autoupdate: true })
    this.#apps = new Map(['another.app', 'third.app'].map((id) => [id, app(id)]))
    this.#apps.set(APP, { ...app(APP), enabled })
    this.#settings = new Map<string, unknown>([['x', 1]])
  }

  #signature(sign: Sign): Record<string, string> {
    return sign === 'none' ? {} : { 'X-HOMEY-ID': sign === 'own' ? this.id : 'another-hub' }
  }

  #read(path: string): unknown {
    if (path.endsWith('/system/ping')) return true
    if (path.endsWith('/sessions/session/me')) return { scopes: ['homey.app', 'homey.speech'] }
    if (path.endsWith('/apps/app')) return Object.fromEntries(this.#apps)
    const [, id = '', setting, name] = /\/apps\/app\/([^/]+)(\/setting)?(?:\/([^/]+))?$/.exec(path) ?? []
    if (setting === undefined) return this.#apps.get(id)
    return name === undefined ? Object.fromEntries(this.#settings) : this.#settings.get(name)
  }

  #execute({ method, url = '' }: IncomingMessage, body: string): void {
    this.executed += 1
    const value: unknown = body === '' ? undefined : JSON.parse(body)
    const given: Record<string, unknown> = typeof value === 'object' ? { ...value } : {}
    const path = url.replace(/\?.*/, '').replace(/.*\/manager\//, '')
    const app = this.#apps.get(APP)
    if (path.endsWith('/enable') && app) app.enabled = true
    else if (path.endsWith('/disable') && app) app.enabled = false
    else if (path.endsWith('/store') && app) app.version = '2.0.0'
    else if (path.includes('/setting/') && method === 'PUT') this.#settings.set('x', given['value'])
    else if (path.includes('/setting/')) this.#settings.delete('x')
    else if (path === `apps/app/${APP}` && method === 'PUT' && app) app.autoupdate = given['autoupdate'] === true
    else if (path === `apps/app/${APP}` && method === 'DELETE') this.#apps.delete(APP)
  }
}
