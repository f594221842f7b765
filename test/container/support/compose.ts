import { Observer } from '../../support/observer.ts'
import { execute } from '../../support/process.ts'
import { required } from '../../support/skipped.ts'
import { docker, hasDocker, IMAGE, MOSQUITTO_IMAGE, works } from './engine.ts'
import { example } from './installation.ts'

export const SECRETS = 'config/demo/secrets'

const COMMANDS = [['docker', 'compose'], ['docker-compose']] as const
const found = COMMANDS.find(([command, ...args]) => works(command, ...args, 'version'))

/** Whether Docker Compose is installed, as a plugin or program. With REQUIRE_DOCKER=1, it is an error if it is not. */
export const hasCompose =
  hasDocker &&
  required(
    'DOCKER',
    found !== undefined,
    'the tests of the compose files',
    'docker compose is not installed (apt-get install docker-compose)',
  )

/** Returns a project's command, leading arguments and environment. */
export function composed(project: string, variables: Readonly<Record<string, string>>) {
  const [command = '', ...words] = [...(found ?? []), '-p', project]
  return { command, words, env: { ...process.env, HUB2MQTT_IMAGE: IMAGE, MOSQUITTO_IMAGE, ...variables } }
}

/** Returns a function that runs Docker Compose for the demo of a project, and resolves with the output. */
export function demo(project: string, variables: Readonly<Record<string, string>>, files: readonly string[] = []) {
  const { command, words, env } = composed(project, variables)
  return (...args: readonly string[]) => execute(command, [...words, ...files, '--profile', 'demo', ...args], { env })
}

export const containersOf = async (compose: ReturnType<typeof demo>) =>
  (await compose('ps', '-q')).split('\n').filter((id) => /^[0-9a-f]{12,}$/.test(id))

/** Returns the health of each container, or `none`. */
export async function healthOf(compose: ReturnType<typeof demo>): Promise<string[]> {
  const format = '{{if .State.Health}}{{.State.Health.Status}}{{else}}none{{end}}'
  return (await docker('inspect', '--format', format, ...(await containersOf(compose)))).trim().split('\n').sort()
}

/** Connects a client to a broker of the demo. */
export const observe = (port = 1883) =>
  Observer.on(port, {
    protocol: '5',
    username: 'homeassistant',
    password: example(`${SECRETS}/mqtt_homeassistant_password`).trim(),
  })
