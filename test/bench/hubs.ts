/** The benchmark's interface to the hub process. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import * as v from 'valibot'
import { Process } from '../support/process.ts'
import { now } from './processes.ts'
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
    const deadline = now() + timeoutMs
    for (;;) {
      const sessions = v.parse(v.number(), await ask(this.#process, { do: 'subscribers' }))
      if (sessions >= this.urls.length) return
      if (now() > deadline) throw new Error(`only ${sessions} of ${this.urls.length} sessions after ${timeoutMs} ms`)
      await sleep(20)
    }
  }

  /**
   * Changes the usage of the first `apps` apps in turn. Returns the time of the first event (by `now()`), and the
   * figures that the topics must have at the end.
   */
  burst(events: number, { apps = this.apps, eventful = false, perSecond }: BurstOptions = {}): Burst {
    const from = this.#next
    this.#next += events
    const began = ask(this.#process, { do: 'burst', events, apps, from, eventful, ...(perSecond && { perSecond }) })
    const last = new Set(
      Array.from({ length: Math.min(events, apps * this.urls.length) }, (_, i) => from + events - 1 - i),
    )
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
  /** The number of apps on each hub to change; default: all. */
  readonly apps?: number
  readonly eventful?: boolean
  /** The number of events per second; default: as many as possible. */
  readonly perSecond?: number
}

export interface Burst {
  /** The last memory figure of each app, by which its last message is recognised. */
  readonly last: ReadonlySet<number>
  readonly began: Promise<number>
}

async function ask(process: Process, request: HubRequest): Promise<unknown> {
  return v.parse(HUB_ANSWER, await process.request(request)).result
}
