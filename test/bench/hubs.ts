/** The benchmark's interface to the hub process. */
import { fileURLToPath } from 'node:url'
import * as v from 'valibot'
import { Process } from '../support/process.ts'
import { until } from '../support/until.ts'
import { HUB_ANSWER, type HubRequest } from './protocol.ts'

const URLS = v.array(v.string())

export class Hubs implements AsyncDisposable {
  readonly urls: readonly string[]
  readonly apps: number
  readonly #process: Process
  /** Each change has a different memory figure, so that its message can be recognised. */
  #next = 10_000_000

  private constructor(process: Process, urls: readonly string[], apps: number) {
    this.#process = process
    this.urls = urls
    this.apps = apps
  }

  static async start(hubs: number, apps: number, evidence = false): Promise<Hubs> {
    await using open = new AsyncDisposableStack()
    const program = fileURLToPath(new URL('hub-process.ts', import.meta.url))
    const process = open.use(new Process(globalThis.process.execPath, [program], { output: 'drop', channel: true }))
    const urls = v.parse(URLS, await ask(process, { do: 'open', hubs, apps, evidence }))
    open.move()
    return new Hubs(process, urls, apps)
  }

  async untilSubscribed(timeoutMs = 60_000): Promise<void> {
    const count = async () => v.parse(v.number(), await ask(this.#process, { do: 'subscribers' }))
    await until('all sessions', async () => (await count()) >= this.urls.length, timeoutMs, 20)
  }

  /**
   * Changes the usage of the apps in turn. Returns the time of the first event (by `now()`), and the figures that the
   * topics must have at the end.
   */
  burst(events: number, { eventful = false, perSecond }: BurstOptions = {}) {
    const from = this.#next
    this.#next += events
    const began = ask(this.#process, { do: 'burst', events, from, eventful, ...(perSecond && { perSecond }) })
    const length = Math.min(events, this.apps * this.urls.length)
    // The last memory figure of each app, by which its last message is recognised.
    const last = new Set(Array.from({ length }, (_, i) => from + events - 1 - i))
    return { last, began: began.then((moment) => v.parse(v.number(), moment)) }
  }

  async requests(): Promise<number> {
    return v.parse(v.number(), await ask(this.#process, { do: 'requests' }))
  }

  async crash(): Promise<void> {
    await ask(this.#process, { do: 'crash' })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#process.stop('SIGKILL')
  }
}

export interface BurstOptions {
  readonly eventful?: boolean
  /** The number of events per second; default: as many as possible. */
  readonly perSecond?: number
}

async function ask(process: Process, request: HubRequest): Promise<unknown> {
  return v.parse(HUB_ANSWER, await process.request(request)).result
}
