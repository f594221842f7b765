import { describe, expect } from 'vitest'
import { FLAVOURS } from '../../src/emulator/records.ts'
import { until } from '../support/until.ts'
import { agree, anApp, connected, KEYS, known, listed, test } from './support.ts'

describe.concurrent.each(FLAVOURS)('with a hub of the %s kind', (flavour) => {
  const limits = flavour === 'newer' || flavour === 'self-hosted'

  test('reads all apps, receives changes, and its requests succeed, whatever the hub postpones', async ({
    emulate,
    hold,
  }) => {
    const emulated = await emulate({ flavour, rateLimit: limits })
    const watched = hold(emulated.url)
    await listed(watched)
    await connected(watched)
    expect(agree(emulated, watched)).toBe(true)
    expect(watched.hub.status.scopes).toEqual(flavour === 'reference' ? undefined : KEYS.key)
    const id = anApp(emulated)
    await watched.hub.call('disableApp', { id })
    await until('the app to stop', () => known(watched, id)?.state === 'stopped')
    expect(emulated.apps.get(id)?.enabled).toBe(false)
    const other = anApp(emulated)
    emulated.crash(other, 'Error: boom')
    await until('the crash', () => known(watched, other)?.crashed)
    emulated.uninstall(other)
    await until('the removal', () => !watched.hub.apps.all.has(other))
    expect(agree(emulated, watched)).toBe(true)
  })
})
