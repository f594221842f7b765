import { execute } from '../../support/process.ts'

/** Returns the words of the command for Docker Compose, as a plugin or program; `undefined` if neither is installed. */
export async function findCompose(): Promise<readonly string[] | undefined> {
  for (const words of [['docker', 'compose'], ['docker-compose']]) {
    const [command = '', ...args] = words
    const works = await execute(command, [...args, 'version']).then(
      () => true,
      () => false,
    )
    if (works) return words
  }
  if (process.env['REQUIRE_DOCKER'] === '1') throw new Error('REQUIRE_DOCKER=1, but docker compose is not installed')
  process.stderr.write(
    'skipped: the tests of the compose file, as docker compose is not installed (apt-get install docker-compose)\n',
  )
  return undefined
}
