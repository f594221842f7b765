import { expect, test } from 'vitest'
import { hubOptions } from '../../src/cli/emulate.ts'

const PLAIN = {
  ...{ host: '127.0.0.1', port: undefined, flavour: undefined, 'api-key': [], file: undefined, app: [] },
  ...{ data: undefined, store: undefined, 'memory-limit': undefined, 'cpu-limit': undefined },
  ...{ 'speech-command': undefined, simulated: false, apps: undefined, crashes: false },
  ...{ 'control-port': undefined, 'no-rate-limit': false },
}

test('an emulated hub listens on 8080, a self-hosted one on 4859, and either on the port of --port', () => {
  expect(hubOptions(PLAIN).port).toBe(8080)
  expect(hubOptions({ ...PLAIN, flavour: 'self-hosted' }).port).toBe(4859)
  expect(hubOptions({ ...PLAIN, flavour: 'self-hosted', port: 0 }).port).toBe(0)
})

test('limits come from the flags, --cpu-limit as a share of a core', () => {
  expect(hubOptions(PLAIN).limits).toEqual({})
  expect(hubOptions({ ...PLAIN, 'memory-limit': 1024, 'cpu-limit': 50 }).limits).toEqual({ memory: 1024, cpu: 0.5 })
})

test('--no-rate-limit turns the limit off, and without it the flavour decides', () => {
  expect(hubOptions(PLAIN)).not.toHaveProperty('rateLimit')
  expect(hubOptions({ ...PLAIN, 'no-rate-limit': true }).rateLimit).toBe(false)
})

test('keys, folders of apps and the command for speech come from their flags', () => {
  const flags = { ...PLAIN, 'api-key': ['a=hub.app,hub'], app: ['one', 'two'], 'speech-command': 'say' }
  expect(hubOptions(flags)).toMatchObject({
    ...{ apiKeys: [{ key: 'a', scopes: ['hub.app', 'hub'] }], appFolders: ['one', 'two'], speechCommand: 'say' },
  })
})
