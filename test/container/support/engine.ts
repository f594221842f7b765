import { spawnSync } from 'node:child_process'
import { execute } from '../../support/process.ts'
import { required } from '../../support/skipped.ts'

/** The image to test. The environment can name another image. */
export const IMAGE = process.env['HUB2MQTT_IMAGE'] ?? 'hub2mqtt:test'
/** The variant for Home Assistant, from the same Dockerfile. */
export const APP_IMAGE = `${IMAGE}-home-assistant`
export const MOSQUITTO_IMAGE = process.env['MOSQUITTO_IMAGE'] ?? 'eclipse-mosquitto:2'

export const works = (command: string, ...args: readonly string[]) =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0

/** Whether there is a container engine. With REQUIRE_DOCKER=1, it is an error if there is none. */
export const hasDocker = required(
  'DOCKER',
  works('docker', 'info'),
  'the container tests',
  'no Docker engine is available (docker info fails)',
)

export const docker = (...args: readonly string[]) => execute('docker', args)
