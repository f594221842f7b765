/** hub2mqtt as its users run it: the image, Mosquitto with the example's configuration, and an emulated hub. */
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { GenericContainer, Network, type StartedNetwork, type StartedTestContainer, Wait } from 'testcontainers'
import { passwordHash } from '../../support/brokers.ts'
import { Observer } from '../../support/observer.ts'
import { IMAGE, MOSQUITTO_IMAGE } from './engine.ts'

const USERS = ['hub2mqtt', 'homeassistant', 'button'] as const
export type User = (typeof USERS)[number]

/** Has the restrictions of the example in docs/install.md: read-only, no capabilities, no new privileges. */
class LockedContainer extends GenericContainer {
  constructor(image: string) {
    super(image)
    this.hostConfig.ReadonlyRootfs = true
    this.withDroppedCapabilities('ALL').withSecurityOpt('no-new-privileges:true')
  }
}

export class Installation implements AsyncDisposable {
  readonly passwords: Readonly<Record<User, string>>
  readonly apiKey: string
  readonly #folder: string
  readonly #network: StartedNetwork
  #open = new AsyncDisposableStack()
  #broker: StartedTestContainer | undefined
  #bridge: StartedTestContainer | undefined
  /** Milliseconds from `docker run` until the container is healthy. */
  healthyAfter = 0

  private constructor(network: StartedNetwork, folder: string) {
    const secret = () => randomBytes(12).toString('hex')
    this.#network = network
    this.#folder = folder
    this.passwords = { hub2mqtt: secret(), homeassistant: secret(), button: secret() }
    this.apiKey = secret()
  }

  static async start(): Promise<Installation> {
    await using open = new AsyncDisposableStack()
    const { path } = open.use(mkdtempDisposableSync(join(tmpdir(), 'hub2mqtt-container-')))
    const network = open.use(await new Network().start())
    const installation = new Installation(network, path)
    const use = (container: StartedTestContainer) =>
      open.adopt(container, async (started) => {
        await started.stop({ remove: true, removeVolumes: true })
      })
    installation.#broker = use(await installation.#startBroker())
    use(await installation.#startHub())
    installation.#bridge = use(await installation.#startBridge())
    installation.#open = open.move()
    return installation
  }

  get bridge(): StartedTestContainer {
    if (this.#bridge === undefined) throw new Error('the bridge does not run')
    return this.#bridge
  }

  get broker(): StartedTestContainer {
    if (this.#broker === undefined) throw new Error('the broker does not run')
    return this.#broker
  }

  get secrets(): readonly string[] {
    return [this.apiKey, ...Object.values(this.passwords)]
  }

  connect(username: User): Promise<Observer> {
    const port = this.broker.getMappedPort(1883)
    return Observer.on(port, { protocol: '5', username, password: this.passwords[username] })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#open.disposeAsync()
  }

  #startBroker(): Promise<StartedTestContainer> {
    const lines = USERS.map((user) => `${user}:${passwordHash(this.passwords[user])}\n`)
    const configuration = resolve('config/mosquitto')
    return new LockedContainer(MOSQUITTO_IMAGE)
      .withAddedCapabilities('SETUID', 'SETGID')
      .withNetwork(this.#network)
      .withNetworkAliases('mosquitto')
      .withBindMounts([
        { source: configuration, target: '/mosquitto/config', mode: 'ro' },
        {
          source: this.#secret('passwords', lines.join(''), 0o644),
          target: '/run/secrets/mosquitto_passwords',
          mode: 'ro',
        },
      ])
      .withExposedPorts(1883)
      .withWaitStrategy(Wait.forListeningPorts())
      .start()
  }

  #startHub(): Promise<StartedTestContainer> {
    const file = this.#secret('hub', `keys: {${this.apiKey}: [hub.app, hub.speech]}\n`)
    return new LockedContainer(IMAGE)
      .withCommand('emulate --simulated --host 0.0.0.0 --port 8080 --flavour older --file /run/secrets/hub'.split(' '))
      .withBindMounts([{ source: file, target: '/run/secrets/hub', mode: 'ro' }])
      .withNetwork(this.#network)
      .withNetworkAliases('hub')
      .withWaitStrategy(Wait.forLogMessage('emulated hub listening'))
      .start()
  }

  async #startBridge(): Promise<StartedTestContainer> {
    const begun = performance.now()
    const bridge = await new LockedContainer(IMAGE)
      .withEnvironment({
        HUB2MQTT_HUB_URL: 'http://hub:8080',
        HUB2MQTT_HUB_API_KEY_FILE: '/run/secrets/hub_api_key',
        HUB2MQTT_MQTT_URL: 'mqtt://mosquitto:1883',
        HUB2MQTT_MQTT_USERNAME: 'hub2mqtt',
        HUB2MQTT_MQTT_PASSWORD_FILE: '/run/secrets/mqtt_password',
        HUB2MQTT_LOG_LEVEL: 'trace',
      })
      .withBindMounts([
        { source: this.#secret('key', this.apiKey), target: '/run/secrets/hub_api_key', mode: 'ro' },
        { source: this.#secret('password', this.passwords.hub2mqtt), target: '/run/secrets/mqtt_password', mode: 'ro' },
      ])
      .withNetwork(this.#network)
      .withExposedPorts(8099)
      .withWaitStrategy(Wait.forHealthCheck())
      .start()
    this.healthyAfter = performance.now() - begun
    return bridge
  }

  /** Writes a file that only the container's user can read, if this process may change owners. */
  #secret(name: string, text: string, mode = 0o400): string {
    const path = join(this.#folder, name)
    writeFileSync(path, text)
    const mine = process.getuid?.() !== 0
    if (!mine) chownSync(path, 1000, 1000)
    chmodSync(path, mine ? 0o644 : mode)
    return path
  }
}

export const example = (path: string) => readFileSync(path, 'utf8')
