/** Runs the daemon in this process, as `hub2mqtt run` does. This is much faster than a process for each test. */
import { run } from '../../../src/app.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { VERSION } from '../../../src/base/version.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { createLog } from '../../../src/observability/log.ts'
import { ownerOf } from '../../support/start-token.ts'

export class LocalDaemon {
  readonly #ending = new AbortController()
  readonly #page = Promise.withResolvers<string>()
  readonly #running: Promise<void>

  constructor(file: string) {
    const load = () => loadConfig({ file, env: {} })
    const loaded = load()
    this.#running = run({
      ...loaded,
      load,
      version: VERSION,
      clock: systemClock,
      random: Math.random,
      log: createLog({ ...loaded.config.log, secrets: loaded.secrets, keep: true, destination: { write: () => {} } }),
      signal: this.#ending.signal,
      onReload: () => {},
      onPage: this.#page.resolve,
    })
    // Pass the error to callers that wait for the daemon or stop it.
    this.#running.catch(this.#page.reject)
    this.#page.promise.catch(() => {})
  }

  page(): Promise<string> {
    return this.#page.promise
  }

  async owner(): Promise<{ readonly authorization: string }> {
    return ownerOf(await this.page())
  }

  async stop(): Promise<void> {
    this.#ending.abort()
    await this.#running
  }
}
