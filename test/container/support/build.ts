/**
 * Builds the images once for all tests, unless HUB2MQTT_IMAGE names an existing one, whose variant must exist too.
 * DOCKER_BUILD_OPTIONS has the options that a build needs on this machine, such as `--network host`.
 */
import { APP_IMAGE, docker, hasDocker, IMAGE } from './engine.ts'

export default async function build(): Promise<void> {
  if (!hasDocker || process.env['HUB2MQTT_IMAGE'] !== undefined) return
  const options = (process.env['DOCKER_BUILD_OPTIONS'] ?? '').split(' ').filter((option) => option !== '')
  await docker('build', '--quiet', ...options, '--tag', IMAGE, '.')
  await docker('build', '--quiet', ...options, '--build-arg', 'VARIANT=home-assistant', '--tag', APP_IMAGE, '.')
}
