import type { Limiter } from '../base/limiter.ts'
import type { BridgedHub } from '../bridge/bridge-options.ts'
import { appFilter, policyOf, refusalsOf } from '../contract/permissions.ts'
import { HubError } from '../hub/errors.ts'
import { Hub } from '../hub/hub.ts'
import type { HubCall } from '../hub/proven-hub.ts'
import { Pulse } from '../hub/pulse.ts'
import { connectGate, type HubDependencies } from '../hub/session.ts'
import type { HubConfig, Live } from './options.ts'
import { camelKeys } from './table.ts'

type OpenHub = BridgedHub & { readonly pulse: Pulse }

interface HubsOptions extends Pick<HubDependencies, 'clock' | 'log' | 'random'> {
  /** `renewKey` reads a key again after its hub has rejected it, and returns whether the key has changed. */
  readonly live: Live & { renewKey(name: string): boolean }
  /** The API keys and tokens that must not appear in messages or topics. */
  readonly keys: { clean(text: string): string; areIn(name: string): boolean }
  readonly onCall?: ((hub: string, call: HubCall) => void) | undefined
  /** Whether requests to hubs are permitted at this moment; default: always. */
  readonly mayAct?: (() => boolean) | undefined
  /** Whether many messages wait for the broker, so that hubs should connect more slowly. */
  readonly isBusy: () => boolean
}

export class Hubs implements AsyncDisposable {
  readonly #options: HubsOptions
  /** The open hubs by name. Only `open` and `close` change this map. */
  readonly all = new Map<string, OpenHub>()
  readonly #closing = new Set<Promise<void>>()
  readonly #gate: Limiter
  /** Hubs whose hidden apps have already been logged. */
  readonly #logged = new Set<string>()

  constructor(options: HubsOptions) {
    this.#options = options
    this.#gate = connectGate(options.clock, options.isBusy)
  }

  /** Opens a hub, which the caller must start. */
  open(name: string, config: HubConfig): Hub {
    const { live, keys, onCall, mayAct, clock, log, random } = this.#options
    const pulse = new Pulse(config, clock)
    const fence = () => {
      if (mayAct?.() === false)
        throw new HubError('unreachable', 'This member of the fleet has no lease at the moment.')
    }
    const hub = new Hub(
      {
        ...camelKeys(config),
        beforeRequest: mayAct && fence,
        apiKey: () => live.value.hubs[name]?.api_key ?? '',
        renewKey: () => live.renewKey(name),
        onCall: (call) => {
          pulse.called(call)
          onCall?.(name, call)
        },
        clean: keys.clean,
        shows: this.#filterOf(name),
        timeoutMs: config.timeout,
      },
      { clock, log: log.child({ part: 'hub', hub: name }), random, gate: this.#gate },
    )
    this.all.set(name, { hub, url: config.url, concurrency: config.max_requests, pulse })
    return hub
  }

  /** Resolves when no more requests are sent to the hub. @param writesMs see `Hub.destroy` */
  close(name: string, writesMs = 0): Promise<void> {
    const hub = this.all.get(name)?.hub
    if (hub === undefined) return Promise.resolve()
    this.all.delete(name)
    const closing = hub.destroy(writesMs)
    this.#closing.add(closing)
    return closing.finally(() => this.#closing.delete(closing))
  }

  /** Returns, for each hub, the commands that the configuration, the key or the hub refuses, with the reasons. */
  refusals(): Record<string, Record<string, string>> {
    const policy = policyOf(this.#options.live.value)
    return Object.fromEntries([...this.all].map(([name, { hub }]) => [name, refusalsOf(hub, policy)]))
  }

  refilter(): void {
    for (const [name, { hub }] of this.all) hub.setFilter(this.#filterOf(name))
  }

  hideUnshown(): void {
    for (const { hub } of this.all.values()) hub.apps.hideUnshown()
  }

  /** Applies the configured filters, and hides apps with an API key or a token in their ids, which become topics. */
  #filterOf(name: string): (appId: string) => boolean {
    const { live, keys, log } = this.#options
    const { include, exclude } = live.value.apps
    const isIncluded = appFilter(include, exclude)
    return (appId) => {
      if (!isIncluded(appId)) return false
      if (!keys.areIn(appId)) return true
      if (!this.#logged.has(name)) log.warn({ hub: name }, 'an app with an API key or a token in its id is hidden')
      this.#logged.add(name)
      return false
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...[...this.all.values()].map(({ hub }) => hub.destroy()), ...this.#closing])
  }
}
