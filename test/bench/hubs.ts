/** The bench's end of the hub process. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import * as v from 'valibot'
import { end, onExit } from './processes.ts'
import { HUB_ANSWER, type HubRequest } from './protocol.ts'

const URLS = v.array(v.string())

export class Hubs implements AsyncDisposable {
  readonly urls: readonly string[]
  readonly apps: number
  readonly #child: ChildProcess
  /** Each change has a figure that none had before it. */
  #next = 10_000_000

  private constructor(child: ChildProcess, urls: readonly string[], apps: number) {
    this.#child = child
    this.urls = urls
    this.apps = apps
  }

  static async start(hubs: number, apps: number): Promise<Hubs> {
    const child = fork(fileURLToPath(new URL('hub-process.ts', import.meta.url)), { stdio: ['ignore', 2, 2, 'ipc'] })
    onExit(child)
    return new Hubs(child, v.parse(URLS, await ask(child, { do: 'open', hubs, apps })), apps)
  }

  /** Resolves when as many sessions hear of events as there are hubs. */
  async heard(): Promise<void> {
    while (v.parse(v.number(), await ask(this.#child, { do: 'subscribers' })) < this.urls.length) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  /**
   * Lets usage change `events` times, round the first `apps` apps. Returns when it began (as `now()` tells it)
   * and the figures that the topics must show in the end.
   */
  burst(
    events: number,
    { apps = this.apps, tell = false }: { readonly apps?: number; readonly tell?: boolean } = {},
  ): Burst {
    const from = this.#next
    this.#next += events
    const began = ask(this.#child, { do: 'burst', events, apps, from, tell })
    const last = new Set(
      Array.from({ length: Math.min(events, apps * this.urls.length) }, (_, i) => from + events - 1 - i),
    )
    return { last, began: began.then((moment) => v.parse(v.number(), moment)) }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return end(this.#child, 'SIGKILL')
  }
}

export interface Burst {
  /** The newest memory figure of each app. */
  readonly last: ReadonlySet<number>
  readonly began: Promise<number>
}

/** One question at a time. */
function ask(child: ChildProcess, request: HubRequest): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const gone = () => reject(new Error('the hub process ended'))
    child.once('exit', gone)
    child.once('message', (message) => {
      child.off('exit', gone)
      resolve(v.parse(HUB_ANSWER, message).result)
    })
    child.send(request)
  })
}
