/** An emulated public app store, which serves the newest versions and changelogs over HTTP without a key. */
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { JSON_TYPE } from './faults.ts'
import { listeningPort } from './listening-port.ts'
import { urlOf } from './options.ts'
import { split } from './rest.ts'

export interface StoreApp {
  readonly id: string
  readonly live?: string | undefined
  readonly test?: string | undefined
  /** The changelog of the newest live version, by language. */
  readonly changelog?: Readonly<Record<string, string>> | undefined
  /** The changelogs by version and language. */
  readonly changelogs?: Readonly<Record<string, Readonly<Record<string, string>>>> | undefined
}

const HOST = '127.0.0.1'
const BASE = '/api/v1'

export class EmulatedStore implements AsyncDisposable {
  readonly apps: Map<string, StoreApp>
  readonly #requests: Pick<IncomingMessage, 'method' | 'url' | 'headers'>[] = []
  readonly #listening: ReturnType<typeof listeningPort>
  #port = 0
  /** Answers requests instead of the store; if `undefined`, the store answers. */
  fault: RequestListener | undefined

  static async start(apps: Iterable<StoreApp> = []): Promise<EmulatedStore> {
    const store = new EmulatedStore(apps)
    store.#port = await store.#listening.listen(0)
    return store
  }

  private constructor(apps: Iterable<StoreApp>) {
    this.apps = new Map([...apps].map((app) => [app.id, app]))
    const server = createServer((request, response) => {
      const { method, url, headers } = request
      this.#requests.push({ method, url, headers })
      if (this.fault !== undefined) return this.fault(request, response)
      const answer = method === 'GET' ? this.#answer(split(url ?? '')) : undefined
      response.writeHead(answer === undefined ? 404 : 200, JSON_TYPE)
      response.end(JSON.stringify(answer ?? { error: 'Not Found' }))
    })
    this.#listening = listeningPort(server, HOST)
  }

  get url(): string {
    return `${urlOf(HOST, this.#port)}${BASE}`
  }

  /** The recorded requests, oldest first. */
  get requests(): readonly Pick<IncomingMessage, 'method' | 'url' | 'headers'>[] {
    return [...this.#requests]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listening.close()
  }

  #answer(path: readonly string[]): unknown {
    const [api, v1, kind, id = '', detail, ...more] = path
    const app = [api, v1, kind, ...more].join('/') === 'api/v1/app' ? this.apps.get(id) : undefined
    if (app === undefined) return undefined
    const { live = null, test = null, changelog, changelogs = {} } = app
    if (detail !== undefined) return detail === 'changelog' ? changelogs : undefined
    const build = (version: string | null, rest = {}) => version && { id: 1, version, ...rest }
    const builds = { liveBuild: build(live, { changelog }), testBuild: build(test) }
    return { id: app.id, liveVersion: live, testVersion: test, ...builds, rating: 4.5 }
  }
}
