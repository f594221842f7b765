import { execFileSync } from 'node:child_process'
import { execute } from '../../support/process.ts'

/** The image to test. The environment can name another image. */
export const IMAGE = process.env['HUB2MQTT_IMAGE'] ?? 'hub2mqtt:test'
/** The variant for Home Assistant, from the same Dockerfile. */
export const APP_IMAGE = `${IMAGE}-home-assistant`
export const MOSQUITTO_IMAGE = process.env['MOSQUITTO_IMAGE'] ?? 'eclipse-mosquitto:2'

/** Whether there is a container engine. With REQUIRE_DOCKER=1, it is an error if there is none. */
export const hasDocker = findDocker()

function findDocker(): boolean {
  try {
    execFileSync('docker', ['info'], { stdio: 'ignore' })
    return true
  } catch {
    if (process.env['REQUIRE_DOCKER'] === '1') throw new Error('REQUIRE_DOCKER=1, but no Docker engine is available')
    process.stderr.write('skipped: the container tests, as no Docker engine is available (docker info fails)\n')
    return false
  }
}

export const docker = (...args: readonly string[]) => execute('docker', args)
