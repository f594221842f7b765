import { describe, expect, test } from 'vitest'
import { LogLevels } from '../../src/bridge/log-level.ts'
import type { LogLevel } from '../../src/contract/log-levels.ts'
import { createLog } from '../../src/observability/log.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'

const MINUTE = 60_000

function start(level: LogLevel = 'info') {
  const clock = new FakeClock()
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const log = createLog({ level, format: 'json', secrets: [], destination })
  const told: LogLevel[] = []
  const levels = new LogLevels(level, { log, clock }, (one) => told.push(one))
  return { clock, log, levels, told, audits: () => lines.map((line) => JSON.parse(line)) }
}

describe('a temporary log level', () => {
  test('is replaced with the previous level when its time has passed, and the change is logged', async () => {
    const { clock, log, levels, told, audits } = start()
    levels.set('debug', 10 * MINUTE)
    expect(levels.fallback).toEqual({ level: 'info', remainingMs: 10 * MINUTE })
    await clock.advance(10 * MINUTE - 1)
    expect([log.level, levels.fallback]).toEqual(['debug', { level: 'info', remainingMs: 1 }])
    await clock.advance(1)
    expect([log.level, levels.fallback]).toEqual(['info', undefined])
    expect(told).toEqual(['debug', 'info'])
    expect(audits()).toMatchObject([
      { log_level: 'debug', for_ms: 10 * MINUTE, falls_back_to: 'info' },
      { log_level: 'info' },
    ])
    expect(clock.pending).toBe(0)
  })

  test('does not depend on the wall clock', async () => {
    const { clock, log, levels } = start()
    levels.set('debug', 10 * MINUTE)
    clock.step(365 * 24 * 60 * MINUTE)
    await clock.advance(10 * MINUTE - 1)
    expect(log.level).toBe('debug')
    clock.step(-1_000 * 24 * 60 * MINUTE)
    await clock.advance(1)
    expect(log.level).toBe('info')
  })

  test('is replaced by another one, after which the original level returns', async () => {
    const { clock, log, levels, told } = start('warn')
    levels.set('debug', 10 * MINUTE)
    await clock.advance(9 * MINUTE)
    levels.set('trace', 10 * MINUTE)
    expect(levels.fallback).toEqual({ level: 'warn', remainingMs: 10 * MINUTE })
    await clock.advance(9 * MINUTE)
    expect(log.level).toBe('trace')
    await clock.advance(MINUTE)
    expect(told).toEqual(['debug', 'trace', 'warn'])
  })

  test('is replaced by a permanent level', async () => {
    const { clock, log, levels } = start()
    levels.set('debug', 10 * MINUTE)
    levels.set('error')
    expect([levels.fallback, clock.pending]).toEqual([undefined, 0])
    await clock.advance(60 * MINUTE)
    expect(log.level).toBe('error')
    levels.set('trace', MINUTE)
    await clock.advance(MINUTE)
    expect(log.level).toBe('error')
  })

  test('may last for weeks', async () => {
    const { clock, log, levels } = start()
    const days = 24 * 60 * MINUTE
    levels.set('debug', 60 * days)
    await clock.advance(60 * days - 1)
    expect(log.level).toBe('debug')
    await clock.advance(1)
    expect(log.level).toBe('info')
  })

  test('leaves no timer when the bridge stops', () => {
    const { clock, levels } = start()
    levels.set('debug', MINUTE)
    levels.stop()
    expect(clock.pending).toBe(0)
  })
})

test('subscribers see a temporary level and its end, and a change of the configuration overrides it permanently', async () => {
  await using world = await World.start({ file: 'log: {level: info}\n' })
  const level = () => world.observer.last('hub2mqtt/bridge/log-level')
  expect(await world.request('bridge/cmd/log-level', '{"level":"debug","for":"10s"}')).toMatchObject({ ok: true })
  await until('the level', () => level() === 'debug')
  world.clock.jump(10_000)
  await until('the level before', () => level() === 'info')
  await world.request('bridge/cmd/log-level', '{"level":"debug","for":"10m"}')
  world.bridge.reload('log: {level: warn}\n')
  await until('the configured level', () => level() === 'warn')
  world.clock.jump(10 * MINUTE)
  expect(level()).toBe('warn')
  const changes = world.bridge.lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'log level changed')
  expect(changes.map(({ log_level }) => log_level)).toEqual(['debug', 'info', 'debug', 'warn'])
})
