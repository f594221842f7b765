/** The environment of a test: a hub, a broker, bridges between them, and an observer. */
import type { Broker } from './brokers.ts'
import type { Observer } from './observer.ts'

export interface Parts<H, K extends Broker> {
  readonly hub: H
  readonly broker: K
  readonly observer: Observer
}

/** Subclasses open the parts on a stack, which `keep` takes over at the end. If a step fails, the stack closes them. */
export abstract class AnyWorld<H, B extends AsyncDisposable, K extends Broker = Broker> implements AsyncDisposable {
  readonly hub: H
  readonly broker: K
  readonly observer: Observer
  /** The bridges, the oldest first. */
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
