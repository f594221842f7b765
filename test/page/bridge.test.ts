import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { canBrowse, expectAccessible, see, visit } from './support/browser.ts'
import { asked, type HouseOptions, rowWith, show, startHouse } from './support/house.ts'

const start = (hash: string, options?: HouseOptions) => show(options, { hash })

describe.runIf(canBrowse)('the page of the bridge', () => {
  test('shows broker and hubs, no fleet, and why a hub is offline', async () => {
    const { house, page } = await start('#/bridge')
    const broker = page.getByRole('region', { name: 'MQTT broker' })
    await broker.getByText('MQTT 5').waitFor()
    await broker.getByText('connected').waitFor()
    await broker.getByText('this minute').waitFor()
    const hub = page.getByRole('region', { name: 'Hub home' })
    await hub.getByText('8.1.6').waitFor()
    expect(await page.getByRole('region', { name: 'Fleet' }).count()).toBe(0)
    expect(await page.getByText('Served by').count()).toBe(0)
    house.hub().setKeys({})
    house.hub().dropRealtime('cut')
    await hub.getByText('it does not accept the API key').waitFor()
    await page.getByText('hub home is offline: unauthorized').waitFor()
  })

  test('shows which commands and figures need more permissions, and sends the hub no request for the figures', async () => {
    const { house, page } = await start('#/bridge', { scopes: ['hub.app.readonly'] })
    const hub = page.getByRole('region', { name: 'Hub home' })
    await hub.getByText(/commands are unavailable/).click()
    await see(hub.locator('li').filter({ hasText: 'restart' }), /hub\.app/)
    expect(await hub.getByRole('textbox').isDisabled()).toBe(true)
    await hub.getByText(/Give the API key the permission homey\.system\.readonly/).waitFor()
    expect(await hub.getByRole('heading', { name: 'Health' }).count()).toBe(0)
    expect(asked(house, '/memory')).toHaveLength(0)
  })

  test('shows the health of a hub if its key permits that, without unknown values, and warns only of problems', async () => {
    const scopes = ['hub.app', 'hub.system.readonly', 'hub.updates.readonly']
    const house = await startHouse({ scopes, hubs: { home: {}, cabin: { flavour: 'self-hosted' } } })
    const videoCore = { videoCoreTemperature: 51.26, videoCoreUndervoltage: true, videoCoreThrottled: false }
    const set = { loadavg: [1.5, 1, 0.5], uptime: 4711, ...videoCore }
    house.hub().behave('other-fields', { operation: 'getInfo', set })
    house.hub().behave('wrong-shape', { operation: 'getOptionLastSuccessfulBackup', value: '2026-11-24T09:00:00Z' })
    house.hub().behave('wrong-shape', { operation: 'getUpdates', value: [{ version: '13.5.0' }] })
    for (const name of ['home', 'cabin']) {
      house.hub(name).behave('other-fields', { operation: 'getMemoryInfo', set: { total: 4e9, free: 1e9 } })
      house.hub(name).behave('other-fields', { operation: 'getStorageInfo', set: { total: 8e9, free: 2e9 } })
    }
    house.hub('cabin').behave('other-fields', { operation: 'getInfo', set: { loadavg: null, uptime: null } })
    await house.restart()
    const page = await visit(house.page, { hash: '#/bridge' })
    const facts = async (name: string) => {
      const hub = page.getByRole('region', { name: `Hub ${name}` })
      await hub.getByRole('heading', { name: 'Health' }).waitFor()
      expect(await hub.getByText('homey.system.readonly').count()).toBe(0)
      const list = hub.locator('h3 + dl')
      const values = await list.locator('dd').allTextContents()
      const rows = (await list.locator('dt').allTextContents()).map((row, at) => [row, values[at]])
      return { rows: Object.fromEntries(rows), times: list.locator('time') }
    }
    const { rows, times } = await facts('home')
    expect(rows).toEqual({
      'Power supply': 'too weak',
      Memory: '1 GB free of 4 GB',
      Load: '1.5',
      Temperature: '51.3°C',
      Storage: '2 GB free of 8 GB',
      'Running since': await times.first().textContent(),
      'Last backup': await times.last().textContent(),
      'Available firmware': '13.5.0',
    })
    const booted = Date.parse((await times.first().getAttribute('datetime')) ?? '')
    expect(Math.abs(Date.now() - 4_711_000 - booted)).toBeLessThan(60_000)
    expect(await times.last().getAttribute('datetime')).toBe('2026-11-24T09:00:00.000Z')
    expect((await facts('cabin')).rows).toEqual({ Memory: '1 GB free of 4 GB', Storage: '2 GB free of 8 GB' })
    expect(asked(house, '/memory')).not.toHaveLength(0)
    await expectAccessible(page)
  })

  test('shows and changes the log level without discovery too, refreshes and speaks', async () => {
    const config = { discovery: { format: 'off' }, log: { level: 'debug' } }
    const { house, page } = await start('#/bridge', { config })
    const level = page.getByRole('combobox', { name: 'Log level' })
    await until('the configured level', async () => (await level.inputValue()) === 'debug')
    const headers = { ...(await house.daemon.owner()), 'content-type': 'application/json' }
    await fetch(`${house.url}api/commands/bridge/log-level`, { method: 'POST', headers, body: '"trace"' })
    await until('the new level', async () => (await level.inputValue()) === 'trace')
    await level.selectOption('info')
    await page.getByText(/Log level: done/).waitFor()
    await until('the level in the list', async () => (await level.inputValue()) === 'info')
    const log = async () => await (await fetch(`${house.url}api/log`, { headers })).text()
    await until('the level of the daemon', async () => (await log()).includes(',"level":"info"'))
    await page.getByRole('button', { name: 'Refresh' }).click()
    await page.getByText(/home – Refresh: done/).waitFor()
    await page.getByRole('textbox', { name: 'Speech' }).fill('Dinner is ready')
    await page.keyboard.press('Enter')
    await page.getByText(/home – Speak: done/).waitFor()
    expect(house.hub().spoken).toEqual(['Dinner is ready'])
  })

  test('shows the log level that applies, not one that was refused', async () => {
    const { page } = await start('#/bridge')
    const level = page.getByRole('combobox', { name: 'Log level' })
    await until('the configured level', async () => (await level.inputValue()) === 'info')
    const error = { code: 'busy', message: 'Not now.' }
    await page.route('**/log-level', (route) => route.fulfill({ status: 503, json: { error } }))
    await level.selectOption('trace')
    await page.getByText(/Not now/).waitFor()
    expect(await level.inputValue()).toBe('info')
  })

  test('shows the configuration without its secrets, and the findings of the doctor', async () => {
    const { page } = await start('#/bridge')
    await page.getByRole('region', { name: 'Configuration' }).getByRole('button', { name: 'Show' }).click()
    await page.getByText(/base_topic: hub2mqtt/).waitFor()
    expect(await page.content()).not.toContain('key-of-the-house')
    await page.getByRole('button', { name: 'Run the checks' }).click()
    await page.getByRole('region', { name: 'Doctor' }).locator('pre').waitFor()
  })
})

describe.runIf(canBrowse)('the activity', () => {
  test('shows events and commands as they arrive; pauses and filters', async () => {
    const { house, page } = await start('#/activity')
    const app = 'com.athom.hue'
    await page.getByRole('heading', { name: 'Activity' }).waitFor()
    house.hub().crash(app, 'Error: first')
    await page.getByText(/Error: first/).waitFor()
    // The activity must also show commands from other clients.
    const headers = await house.daemon.owner()
    await fetch(`${house.url}api/commands/home/app/${app}/restart`, { method: 'POST', headers })
    await rowWith(page, 'Restart').getByText(/^done/).waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    house.hub().crash(app, 'Error: second')
    await page.getByRole('button', { name: /Resume \(\d+ new\)/ }).waitFor()
    expect(await page.getByText(/Error: second/).count()).toBe(0)
    await page.getByRole('button', { name: /Resume/ }).click()
    await page.getByText(/Error: second/).waitFor()
    await page.getByRole('button', { name: 'Commands' }).click()
    await page.getByText(/Error: second/).waitFor({ state: 'detached' })
    await page.getByRole('searchbox').fill('no such thing')
    await page.getByText('No entries match.').waitFor()
  })

  const failure = (page: Page, label: string) => page.locator('.list .badge.bad').getByText(label, { exact: true })
  /** Waits until the list shows a failure, and the activity shows it among the failures. */
  async function look(page: Page, name: string, label: string): Promise<void> {
    const row = rowWith(page, name)
    await row.locator('.message').getByText(label).waitFor()
    await page.getByRole('link', { name: 'Activity' }).click()
    await page.getByRole('button', { name: 'Failures' }).click()
    await failure(page, label).waitFor()
    await page.getByRole('link', { name: 'Apps', exact: true }).click()
  }

  test('has a failure if the guardian gave up, and so has the list', async () => {
    const guard = { watch: ['com.athom.hue'], backoff: '1s', backoff_max: '1s', max_restarts: 1 }
    const { house, page } = await start('', { config: { guard } })
    const row = rowWith(page, 'Lumen Lights')
    house.hub().crash('com.athom.hue', 'Error: first')
    await row.getByText('Error: first').waitFor()
    await row.getByText('Running').waitFor()
    house.hub().crash('com.athom.hue', 'Error: second')
    await look(page, 'Lumen Lights', 'Guardian gave up')
    await row.getByText('Guardian gave up: Error: second').waitFor()
    await row.getByRole('link').click()
    await page.locator('.app-head').getByText('Guardian gave up').waitFor()
    await page.getByRole('switch', { name: 'Watches this app' }).click()
    await page.locator('.app-head').getByText('Guardian gave up').waitFor({ state: 'detached' })
  })

  test('has a failure if an update is bad, and so has the list, until there is another version', async () => {
    const guard = { watch: ['com.athom.hue'], backoff: '1s', backoff_max: '1s' }
    const { house, page } = await start('', { config: { guard } })
    const row = rowWith(page, 'Lumen Lights')
    await row.getByText('Running').waitFor()
    house.hub().change('com.athom.hue', { version: '8.0.0' })
    await row.getByText('8.0.0').waitFor()
    for (const time of ['first', 'second', 'third']) {
      house.hub().crash('com.athom.hue', `Error: ${time}`)
      await row.getByText(`Error: ${time}`).waitFor()
      house.hub().recover('com.athom.hue')
      await row.getByText('Running').waitFor()
    }
    await look(page, 'Lumen Lights', 'Bad update')
    house.hub().change('com.athom.hue', { version: '8.0.1' })
    await row.getByText('Bad update').waitFor({ state: 'detached' })
  })

  test('has a failure if an update failed, and so has the list, until there is another version', async () => {
    const config = {
      guard: { watch: ['net.lindqvist.heatpump'] },
      updates: { policy: 'window', window: { start: '* * * * *', length: '1h' }, backup: true },
    }
    const { house, page } = await start('', { config })
    const row = rowWith(page, 'Heat Pump')
    await look(page, 'Heat Pump', 'Update failed')
    house.hub().change('net.lindqvist.heatpump', { version: '2.5.0' })
    await row.getByText('Update failed').waitFor({ state: 'detached' })
  })
})
