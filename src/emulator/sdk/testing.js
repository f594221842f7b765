// Starts an app in a test without a hub: routes, events and settings work as in a process; the test acts as the hub.
import { format } from 'node:util'
import { createApp } from './app.js'
import { HubError, refusal, requestLine } from './connection.js'
import { createHub } from './hub.js'
import { refusedParameter, refusedSetting } from './limits.js'

export async function startApp(start, options = {}) {
  const { id = 'com.example.app', version = '1.0.0', managers = {}, apps = {} } = options
  const settings = new Map()
  const [emitted, spoken, lines] = [[], [], []]

  function store(name, value) {
    const others = settings.has(name) ? settings.size - 1 : settings.size
    const json = JSON.stringify(value)
    const refused = refusedSetting(name, json, others)
    if (refused !== undefined) throw new HubError(refused)
    settings.set(name, JSON.parse(json))
  }

  const answers = {
    subscribe: () => null,
    setting({ operation, name, value = null }) {
      if (operation === 'all') return Object.fromEntries(settings)
      if (operation === 'set') store(name, value)
      if (operation === 'unset') settings.delete(name)
      return operation === 'get' ? settings.get(name) : null
    },
    call({ section, item, operation, args }) {
      const owner = own(section === 'app' ? apps : managers, item)
      if (owner !== undefined && Object.hasOwn(owner, operation)) return owner[operation](args)
      if (item !== 'speech-output' || operation !== 'say') throw new HubError(missing(section, item, operation))
      if (typeof args.text !== 'string') throw new HubError(refusedParameter('text', args.text))
      spoken.push(args.text)
    },
  }
  const connection = {
    send(message) {
      if (message.type === 'emit') emitted.push([message.event, asJson(message.payload)])
    },
    ask: async (message) => asJson(await answers[message.type](JSON.parse(requestLine(message)))),
  }
  const app = createApp(id, version, connection)
  const hub = createHub(connection)

  const request = (method) => async (path, body) => {
    const { pathname, searchParams } = new URL(path, 'http://app')
    const query = Object.fromEntries(searchParams)
    try {
      return asJson(await app.answer({ method, path: pathname, query, body: asJson(body) }))
    } catch (cause) {
      throw Object.assign(new HubError(refusal(cause)), { cause })
    }
  }

  for (const [name, value] of Object.entries(asJson(options.settings ?? {}))) store(name, value)
  await start({ app: app.public, hub: hub.public, log: (...words) => void lines.push(format(...words)) })
  return {
    get: request('GET'),
    post: request('POST'),
    put: request('PUT'),
    delete: request('DELETE'),
    emitted,
    spoken,
    lines,
    get settings() {
      return Object.fromEntries(settings)
    },
    setSetting(name, value) {
      store(name, value)
      hub.emitSetting({ name, value: settings.get(name) })
    },
    unsetSetting(name) {
      settings.delete(name)
      hub.emitSetting({ name })
    },
    managerEvent: (name, event, payload) => hub.emit(`homey:manager:${name}`, event, asJson(payload)),
    appEvent: (other, event, payload) => hub.emit(`homey:app:${other}`, event, asJson(payload)),
    stop: () => app.stop(),
  }
}

/** Copies a value as JSON, as the pipe between an app and its hub does. */
const asJson = (value) => JSON.parse(JSON.stringify(value) ?? 'null')

const own = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined)

const missing = (section, item, operation) => ({
  status: 404,
  code: 'not_found',
  message: `The test has no answer: pass startApp ${section}s['${item}'].${operation}`,
})
