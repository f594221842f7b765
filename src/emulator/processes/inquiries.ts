/** Answers the questions of a running app: operations, events, its own settings. */
import type { AppMessage, AppQuestion, HubMessage } from './messages.ts'
import type { World } from './world.ts'

export type AppNews = Extract<AppMessage, { readonly type: 'emit' | 'unsubscribe' }>

export class Inquiries {
  readonly #id: string
  readonly #world: Pick<World, 'host' | 'state'>
  readonly #tell: (message: HubMessage) => void
  readonly #subscriptions = new Map<string, () => void>()
  #ended = false

  constructor(id: string, world: Pick<World, 'host' | 'state'>, tell: (message: HubMessage) => void) {
    this.#id = id
    this.#world = world
    this.#tell = tell
  }

  /** @throws HubError for what the hub refuses */
  answer(question: AppQuestion): unknown {
    switch (question.type) {
      case 'call': {
        const { section, item, operation, args } = question
        return this.#world.host.inApp.call(this.#id, { section, item, operation, args })
      }
      case 'subscribe':
        return this.#subscribe(question.uri)
      case 'setting':
        return this.#setting(question)
    }
  }

  hear(news: AppNews): void {
    if (this.#ended) return
    if (news.type === 'emit') this.#world.host.inApp.emit(this.#id, news.event, news.payload)
    else {
      this.#subscriptions.get(news.uri)?.()
      this.#subscriptions.delete(news.uri)
    }
  }

  /** The app has ended: stop sending it events. */
  end(): void {
    this.#ended = true
    for (const unsubscribe of this.#subscriptions.values()) unsubscribe()
    this.#subscriptions.clear()
  }

  #subscribe(uri: string): void {
    if (this.#ended || this.#subscriptions.has(uri)) return
    const unsubscribe = this.#world.host.inApp.subscribe(this.#id, uri, (event, payload) => {
      this.#tell({ type: 'event', uri, event, payload })
    })
    this.#subscriptions.set(uri, unsubscribe)
  }

  #setting({ operation, name, value }: Extract<AppQuestion, { readonly type: 'setting' }>): unknown {
    const { state } = this.#world
    switch (operation) {
      case 'get':
        return state.settings(this.#id).get(name)
      case 'all':
        return Object.fromEntries(state.settings(this.#id))
      case 'set':
        return state.setSetting(this.#id, name, value)
      case 'unset':
        return state.unsetSetting(this.#id, name)
    }
  }
}
