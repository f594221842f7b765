import { expect, test } from 'vitest'
import { createLog } from '../../src/log/log.ts'
import { LiveConfig } from '../../src/reload/live-config.ts'
import { HUB, load } from '../config/support.ts'

test('whatever the sources of the configuration throw changes nothing and is told in the log', () => {
  const lines: string[] = []
  const log = createLog({
    level: 'debug',
    format: 'json',
    secrets: [],
    destination: { write: (line) => lines.push(line) },
  })
  const { config } = load({ yaml: HUB })
  const live = new LiveConfig(
    config,
    () => {
      throw new RangeError('of a kind that nobody thought of')
    },
    log,
  )
  expect(live.reload()).toBeUndefined()
  expect(live.renewKey('home')).toBe(false)
  expect(live.renewCredentials()).toEqual({ username: undefined, password: undefined })
  expect(live.value).toBe(config)
  expect(lines.join()).toContain('of a kind that nobody thought of')
  expect(lines.join()).toContain('was not taken over')
})
