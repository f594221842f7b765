/**
 * Builds the images once for all tests, unless HUB2MQTT_IMAGE names one that is there already (and its variant with it).
 * DOCKER_BUILD_OPTIONS holds what a build needs on this machine, such as `--network host`.
 */
import { APP_IMAGE, docker, hasDocker, IMAGE } from './engine.ts'

export default async function build(): Promise<void> {
  if (!hasDocker || process.env['HUB2MQTT_IMAGE'] !== undefined) return
  const options = (process.env['DOCKER_BUILD_OPTIONS'] ?? '').split(' ').filter((option) => option !== '')
  await docker('build', '--quiet', ...options, '--tag', IMAGE, '.')
  await docker('build', '--quiet', ...options, '--build-arg', 'VARIANT=home-assistant', '--tag', APP_IMAGE, '.')
}
