// The hub from an app's point of view: managers, other apps and speech.
import { HubError } from './connection.js'
import { isName, refusedName, refusedParameter } from './limits.js'

export function createHub(connection) {
  const listeners = new Map()
  const settingListeners = new Set()

  const call = async (section, item, operation, args = {}) => {
    if (!isName(item)) throw new HubError(refusedParameter('item', item))
    if (typeof args !== 'object' || args === null) throw new HubError(refusedParameter('args', args))
    return await connection.ask({ type: 'call', section, item, operation, args })
  }

  const events = (uri) => ({
    async on(event, listener) {
      const known = listeners.get(uri) ?? []
      listeners.set(uri, [...known, { event, listener }])
      if (known.length > 0) return
      await connection.ask({ type: 'subscribe', uri }).catch((error) => {
        listeners.delete(uri)
        throw error
      })
    },
    off(event, listener) {
      const known = listeners.get(uri) ?? []
      const left = known.filter((one) => one.event !== event || one.listener !== listener)
      if (left.length > 0) listeners.set(uri, left)
      else if (listeners.delete(uri)) connection.send({ type: 'unsubscribe', uri })
    },
  })

  const setting = async (operation, name, value) => {
    const refused = refusedName(name)
    if (refused !== undefined) throw new HubError(refused)
    return await connection.ask({ type: 'setting', operation, name, value })
  }
  const settings = {
    get: (name) => setting('get', name),
    set: (name, value) => setting('set', name, value),
    unset: (name) => setting('unset', name),
    all: () => connection.ask({ type: 'setting', operation: 'all' }),
    on(event, listener) {
      if (event !== 'change') throw new TypeError(`settings: unknown event ${JSON.stringify(event)}`)
      settingListeners.add(listener)
    },
    off: (_event, listener) => void settingListeners.delete(listener),
  }

  const operations = (section, item, own) =>
    new Proxy(own, {
      get(target, name) {
        if (Object.hasOwn(target, name)) return target[name]
        // Do not treat `then` as an operation, because `await` reads this property.
        if (typeof name !== 'string' || name === 'then') return undefined
        return (args) => call(section, item, name, args)
      },
    })

  return {
    public: Object.freeze({
      manager: (name) => operations('manager', name, name === 'settings' ? settings : events(`homey:manager:${name}`)),
      app(id) {
        const send = (method) => (path, options) => call('app', id, method, { path, ...options })
        return {
          get: send('get'),
          post: send('post'),
          put: send('put'),
          delete: send('delete'),
          ...events(`homey:app:${id}`),
        }
      },
      speak: (text) => call('manager', 'speech-output', 'say', { text }),
    }),

    emit(uri, event, payload) {
      for (const one of listeners.get(uri) ?? []) if (one.event === event) one.listener(payload)
    },

    emitSetting({ name, value }) {
      for (const listener of settingListeners) listener(name, value)
    },
  }
}
