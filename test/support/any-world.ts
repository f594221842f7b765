/** A hub, a broker, bridges between them, and an observer, each of the kind that a test needs. */
import type { Broker } from './brokers.ts'
import type { Observer } from './observer.ts'

export interface Parts<H, K extends Broker> {
  readonly hub: H
  readonly broker: K
  readonly observer: Observer
}

/** The parts are opened on a stack, which `keep` takes over after the last step. Earlier failures close the parts. */
export abstract class AnyWorld<H, B extends AsyncDisposable, K extends Broker = Broker> implements AsyncDisposable {
  readonly hub: H
  readonly broker: K
  readonly observer: Observer
  /** Oldest first. */
  readonly bridges: B[] = []
  #open = new AsyncDisposableStack()

  protected constructor({ hub, broker, observer }: Parts<H, K>, open: AsyncDisposableStack) {
    this.hub = hub
    this.broker = broker
    this.observer = observer
    open.defer(async () => {
      await using bridges = new AsyncDisposableStack()
      for (const bridge of this.bridges) bridges.use(bridge)
    })
  }

  get bridge(): B {
    const bridge = this.bridges.at(-1)
    if (bridge === undefined) throw new Error('no bridge was started')
    return bridge
  }

  protected keep(open: AsyncDisposableStack): this {
    this.#open = open.move()
    return this
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#open.disposeAsync()
  }
}
