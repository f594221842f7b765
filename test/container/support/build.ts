/**
 * Builds the images once for all tests, unless HUB2MQTT_IMAGE names an existing image; its variant for Home Assistant
 * must exist too. DOCKER_BUILD_OPTIONS contains build options for this machine, such as `--network host`.
 */
import { APP_IMAGE, docker, hasDocker, IMAGE } from './engine.ts'

export default async function build(): Promise<void> {
  if (!hasDocker || process.env['HUB2MQTT_IMAGE'] !== undefined) return
  const options = (process.env['DOCKER_BUILD_OPTIONS'] ?? '').split(' ').filter((option) => option !== '')
  await docker('build', '--quiet', ...options, '--tag', IMAGE, '.')
  await docker('build', '--quiet', ...options, '--build-arg', 'VARIANT=home-assistant', '--tag', APP_IMAGE, '.')
}
