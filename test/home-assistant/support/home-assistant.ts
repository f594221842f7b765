/** A real Home Assistant in a separate process, set up as a user would do it, and queried over its own interfaces. */
import { cp, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { vi } from 'vitest'
import { freePort } from '../../support/ports.ts'
import { Process } from '../../support/process.ts'
import { until } from '../../support/until.ts'
import type { Installation } from './installation.ts'

export interface State {
  readonly entity_id: string
  readonly state: string
  readonly attributes: Readonly<Record<string, unknown>>
}

export interface RegisteredEntity {
  readonly entity_id: string
  readonly unique_id: string
  readonly platform: string
  readonly original_name: string | null
  readonly disabled_by: string | null
  readonly entity_category: string | null
  readonly device_id: string
}

export interface RegisteredDevice {
  readonly id: string
  readonly name: string
  readonly manufacturer: string | null
  readonly sw_version: string | null
  readonly configuration_url: string | null
  readonly identifiers: readonly (readonly string[])[]
  readonly via_device_id: string | null
}

/** The blueprints, which users copy into their configuration. */
const BLUEPRINTS = new URL('../../../config/home-assistant/blueprints/', import.meta.url)

export interface Notification {
  readonly notification_id: string
  readonly title: string | null
  readonly message: string
}

const CLIENT_ID = 'http://127.0.0.1/'
const PASSWORD = 'only-for-tests'

/** A script that shows the question as a notification, instead of asking on a phone. */
const ASK = {
  mode: 'parallel',
  sequence: [
    {
      action: 'persistent_notification.create',
      data: {
        notification_id: 'asked_{{ data.tag }}',
        title: '{{ title }}',
        message: "{{ message }} {{ data.actions | map(attribute='action') | join(' ') }}",
      },
    },
  ],
}

export class HomeAssistant implements AsyncDisposable {
  /** The log lines of earlier runs. */
  readonly #earlier: string[] = []
  readonly #installation: Installation
  readonly #folder: string
  readonly #port: number
  #process: Process | undefined
  #open = new AsyncDisposableStack()
  #token = ''
  #refreshToken = ''

  private constructor(installation: Installation, folder: string, port: number) {
    this.#installation = installation
    this.#folder = folder
    this.#port = port
  }

  /** Starts Home Assistant, with MQTT connected to a broker on this machine, and the blueprints installed. */
  static async start(
    installation: Installation,
    brokerPort: number,
    automations: readonly object[] = [],
  ): Promise<HomeAssistant> {
    await using open = new AsyncDisposableStack()
    const { path } = open.use(await mkdtempDisposable(join(installation.temporary, 'home-assistant-')))
    const instance = new HomeAssistant(installation, path, await freePort())
    open.defer(() => instance.stop())
    await writeFile(join(path, 'configuration.yaml'), instance.#configuration(automations))
    await cp(BLUEPRINTS, join(path, 'blueprints'), { recursive: true })
    await instance.run()
    await instance.#onboard()
    await instance.#connect(brokerPort)
    instance.#open = open.move()
    return instance
  }

  get url(): string {
    return this.#url('')
  }

  /** The local storage of the page in a browser with a login. */
  get login(): object {
    const expires = Date.now() + 1_800_000
    return {
      hassUrl: this.url,
      clientId: CLIENT_ID,
      access_token: this.#token,
      refresh_token: this.#refreshToken,
      token_type: 'Bearer',
      expires_in: 1800,
      expires,
    }
  }

  async finishOnboarding(): Promise<void> {
    for (const step of ['core_config', 'analytics']) await this.#post(`onboarding/${step}`, {})
    await this.#post('onboarding/integration', { client_id: CLIENT_ID, redirect_uri: CLIENT_ID })
  }

  /** Starts the process. Resolves when Home Assistant reports that it is running. */
  async run(): Promise<void> {
    const { command, root } = this.#installation
    const [program, ...first] = command
    const config = this.#folder.slice(root.length)
    const own = ['-m', 'homeassistant', '--config', config, '--skip-pip', '--log-no-color']
    this.#process = new Process(program, [...first, ...own])
    await until('Home Assistant to run', () => this.#isUp(), 120_000, 50)
  }

  async stop(): Promise<void> {
    await this.#process?.stop('SIGTERM', 60_000)
    this.#earlier.push(...this.#lines())
    this.#process = undefined
  }

  /** The log lines of all runs. */
  get lines(): readonly string[] {
    return [...this.#earlier, ...this.#lines()]
  }

  #lines(): readonly string[] {
    return [...(this.#process?.lines ?? []), ...(this.#process?.errors ?? [])]
  }

  /** Returns the warnings and errors of the MQTT integration. */
  complaints(): string[] {
    return this.lines.filter((line) => /(WARNING|ERROR|CRITICAL) .*\[homeassistant\.components\.mqtt/.test(line))
  }

  async states(): Promise<Map<string, State>> {
    const states: State[] = JSON.parse(await this.#request('GET', 'states'))
    return new Map(states.map((state) => [state.entity_id, state]))
  }

  async call(service: string, entity: string, data: Readonly<Record<string, unknown>> = {}): Promise<void> {
    await this.#post(`services/${service.replace('.', '/')}`, { entity_id: entity, ...data })
  }

  /** Overwrites the state and the attributes of an entity until its integration changes them. */
  async overwrite({ entity_id, state, attributes }: State): Promise<void> {
    await this.#post(`states/${entity_id}`, { state, attributes })
  }

  async entities(): Promise<RegisteredEntity[]> {
    const entities = await this.command<RegisteredEntity[]>({ type: 'config/entity_registry/list' })
    return entities.filter(({ platform }) => platform === 'mqtt')
  }

  devices(): Promise<RegisteredDevice[]> {
    return this.command<RegisteredDevice[]>({ type: 'config/device_registry/list' })
  }

  async device(objectId: string): Promise<RegisteredDevice> {
    const found = (await this.devices()).find(({ identifiers }) => identifiers[0]?.[1] === objectId)
    if (found === undefined) throw new Error(`no device ${objectId}`)
    return found
  }

  async entity(uniqueId: string): Promise<RegisteredEntity> {
    const found = (await this.entities()).find(({ unique_id }) => unique_id === uniqueId)
    if (found === undefined) throw new Error(`no entity ${uniqueId}`)
    return found
  }

  async state(uniqueId: string): Promise<State | undefined> {
    const { entity_id } = await this.entity(uniqueId)
    return (await this.states()).get(entity_id)
  }

  async untilState(uniqueId: string, wanted: string, timeout = 30_000): Promise<State> {
    const { entity_id } = await this.entity(uniqueId)
    const isThere = async () => {
      const state = (await this.states()).get(entity_id)
      if (state?.state !== wanted) throw new Error(`${entity_id} is ${state?.state}, not ${wanted}`)
      return state
    }
    return vi.waitFor(isThere, { timeout })
  }

  /** Calls a service of Home Assistant for an entity. */
  async use(service: string, uniqueId: string, data?: Readonly<Record<string, unknown>>): Promise<void> {
    await this.call(service, (await this.entity(uniqueId)).entity_id, data)
  }

  notifications(): Promise<Notification[]> {
    return this.command({ type: 'persistent_notification/get' })
  }

  render(template: string): Promise<string> {
    return this.#request('POST', 'template', JSON.stringify({ template }))
  }

  /** Records every state of an entity until `close`. */
  async watch(entityId: string): Promise<{ readonly seen: State[]; close(): void }> {
    const seen: State[] = []
    const socket = this.#socket()
    socket.addEventListener('message', ({ data }) => {
      const { event } = JSON.parse(String(data))
      if (event?.data?.entity_id === entityId && event.data.new_state !== null) seen.push(event.data.new_state)
    })
    await this.#ask(socket, { type: 'subscribe_events', event_type: 'state_changed' })
    return { seen, close: () => socket.close() }
  }

  /** Records every event of a device trigger until `close`. */
  async watchTrigger(deviceId: string, type: string): Promise<{ readonly fired: unknown[]; close(): void }> {
    const fired: unknown[] = []
    const socket = this.#socket()
    socket.addEventListener('message', ({ data }) => {
      const message = JSON.parse(String(data))
      if (message.type === 'event') fired.push(message.event.variables.trigger.payload_json)
    })
    const trigger = { platform: 'device', domain: 'mqtt', device_id: deviceId, type, subtype: 'app' }
    await this.#ask(socket, { type: 'subscribe_trigger', trigger })
    return { fired, close: () => socket.close() }
  }

  command<T>(what: Readonly<Record<string, unknown>>): Promise<T> {
    const socket = this.#socket()
    return this.#ask<T>(socket, what).finally(() => socket.close())
  }

  #socket(): WebSocket {
    return new WebSocket(`ws://127.0.0.1:${this.#port}/api/websocket`)
  }

  #ask<T>(socket: WebSocket, what: Readonly<Record<string, unknown>>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    socket.addEventListener('error', () => reject(new Error('the WebSocket failed')))
    socket.addEventListener('message', ({ data }) => {
      const message = JSON.parse(String(data))
      if (message.type === 'auth_required') socket.send(JSON.stringify({ type: 'auth', access_token: this.#token }))
      else if (message.type === 'auth_ok') socket.send(JSON.stringify({ id: 1, ...what }))
      else if (message.type === 'result' && message.success) resolve(message.result)
      else if (message.type !== 'event') reject(new Error(`Home Assistant answers ${String(data)}`))
    })
    return promise
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#open.disposeAsync()
  }

  /** Returns a configuration without integrations that need the internet. */
  #configuration(automations: readonly object[]): string {
    return JSON.stringify({
      homeassistant: {
        name: 'Test',
        latitude: 52,
        longitude: 5,
        elevation: 0,
        unit_system: 'metric',
        currency: 'EUR',
        country: 'NL',
        time_zone: 'UTC',
      },
      http: { server_host: '127.0.0.1', server_port: this.#port },
      logger: { default: 'warning', logs: { 'homeassistant.components.mqtt': 'debug' } },
      config: {},
      automation: automations,
      script: { ask: ASK },
    })
  }

  async #isUp(): Promise<boolean> {
    if (!this.#process?.alive) throw new Error(`Home Assistant ended: ${this.lines.slice(-20).join('\n')}`)
    try {
      if (this.#token === '') return (await fetch(this.#url('/api/onboarding'))).ok
      return JSON.parse(await this.#request('GET', 'config')).state === 'RUNNING'
    } catch {
      return false
    }
  }

  async #onboard(): Promise<void> {
    const user = { client_id: CLIENT_ID, name: 'Test', username: 'test', password: PASSWORD, language: 'en' }
    const { auth_code } = await this.#post('onboarding/users', user)
    const body = new URLSearchParams({
      client_id: CLIENT_ID,
      grant_type: 'authorization_code',
      code: String(auth_code),
    })
    const answer = await fetch(this.#url('/auth/token'), { method: 'POST', body })
    const { access_token, refresh_token } = JSON.parse(await answer.text())
    this.#token = access_token
    this.#refreshToken = refresh_token
    await until('Home Assistant to run', () => this.#isUp(), 60_000, 50)
  }

  /** Sets up the MQTT integration with the fields of its form. Newer versions have more fields. */
  async #connect(brokerPort: number): Promise<void> {
    const { flow_id, data_schema } = await this.#post('config/config_entries/flow', { handler: 'mqtt' })
    const asked: unknown[] = Array.isArray(data_schema) ? data_schema.map((field) => Object(field).name) : []
    const { type } = await this.#post(`config/config_entries/flow/${String(flow_id)}`, {
      broker: '127.0.0.1',
      port: brokerPort,
      ...(asked.includes('other_settings') && { other_settings: { set_client_cert: false, set_ca_cert: 'off' } }),
    })
    if (type !== 'create_entry') throw new Error(`Home Assistant does not connect to the broker: ${String(type)}`)
  }

  #url(path: string): string {
    return `http://127.0.0.1:${this.#port}${path}`
  }

  async #post(path: string, body: unknown): Promise<Readonly<Record<string, unknown>>> {
    return JSON.parse(await this.#request('POST', path, JSON.stringify(body)))
  }

  async #request(method: string, path: string, body?: string): Promise<string> {
    const headers = { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' }
    const answer = await fetch(this.#url(`/api/${path}`), { method, headers, ...(body !== undefined && { body }) })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`Home Assistant answers ${method} ${path} with ${answer.status}: ${text}`)
    return text
  }
}
