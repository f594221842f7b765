import type { Locator, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { canBrowse, expectAccessible, overflow, seeAny } from './support/browser.ts'
import { asked, type HouseOptions, show } from './support/house.ts'

const HUE = 'com.athom.hue'
const HASH = `#/app/home/${HUE}`

const start = (options?: HouseOptions) => show(options, { hash: HASH })

async function uses(page: Page): Promise<string[]> {
  const rows = page.getByRole('region', { name: 'Details' }).locator('dl > div', { hasText: /^(Devices|Flows)/ })
  await rows.first().waitFor()
  return (await rows.allInnerTexts()).map((row) => row.replace(/\s*\n\s*/, ': '))
}

const secretive = {
  id: HUE,
  name: 'Lumen Lights',
  version: '7.0.12',
  settings: { transition: 400, access_token: 'canary-token', bridges: ['192.0.2.14'] },
}

describe.runIf(canBrowse)('the page of an app', () => {
  test('shows its fields, its usage and its events', async () => {
    const { house, page } = await start()
    await page.getByRole('heading', { name: 'Lumen Lights' }).waitFor()
    await page.getByText('Ottilie Brandt').waitFor()
    await page.getByRole('slider', { name: 'CPU, last 24 hours' }).waitFor()
    house.hub().crash(HUE, 'Error: the lamp is dark')
    const events = page.getByRole('region', { name: 'Events and commands' })
    await events.getByText('Error: the lamp is dark', { exact: true }).waitFor()
    await events.getByText('1 crash').waitFor()
    house.hub().recover(HUE)
    const hasRecovered = async () => {
      // The groups with hidden entries differ between runs, because events that arrive together form one group.
      for (const more of await events.getByRole('button', { name: /more$/, expanded: false }).all()) await more.click()
      return events.getByText('Recovered').isVisible()
    }
    await expect.poll(hasRecovered, { timeout: 30_000 }).toBe(true)
    house.hub().uninstall(HUE)
    await page.getByText(`There is no app ${HUE}.`).waitFor()
    await expectAccessible(page)
  })

  test('shows how many devices and flows use it, and how many of them are unavailable or broken', async () => {
    const apps = [secretive, { id: 'com.none', name: 'Off', version: '1.0.0', enabled: false }]
    const scopes = ['hub.app', 'hub.device.readonly', 'hub.flow.readonly']
    const { house, page } = await start({ scopes, hubs: { home: { apps } } })
    expect(await uses(page)).toEqual(['Devices: 3', 'Flows: 1'])
    await page.goto(`${house.page}#/app/home/com.none`)
    await page.getByRole('heading', { name: 'Off' }).waitFor()
    expect(await uses(page)).toEqual(['Devices: 1, 1 unavailable', 'Flows: 1, 1 broken'])
  })

  test('leaves out flows if the key does not permit reading them', async () => {
    const { page } = await start({ scopes: ['hub.app', 'hub.device.readonly'] })
    expect(await uses(page)).toEqual(['Devices: 3'])
  })

  test('reads settings on request, and shows values one by one, secrets last', async () => {
    const { house, page } = await start({ hubs: { home: { apps: [secretive] } } })
    await page.getByRole('heading', { name: 'Lumen Lights' }).waitFor()
    expect(asked(house, '/setting')).toHaveLength(0)
    await page.getByRole('button', { name: 'Read settings' }).click()
    await page.getByText('access_token', { exact: true }).waitFor()
    expect(await page.content()).not.toMatch(/192\.0\.2\.14|canary-token/)
    await page.getByRole('button', { name: 'Show values' }).click()
    await page.getByText('["192.0.2.14"]').waitFor()
    expect(await page.content()).not.toContain('canary-token')
    await page.getByRole('button', { name: 'Show the value of access_token' }).click()
    await page.getByText('canary-token').waitFor()
  })

  test('shows the record and the translations on request, and asks before a report is sent', async () => {
    const { house, page } = await start()
    await page.getByRole('button', { name: 'The hub’s record' }).click()
    await page.getByText(/"raw": \{/).waitFor()
    await page.getByRole('button', { name: 'Translations' }).click()
    await page.getByRole('heading', { name: 'Translations' }).waitFor()
    await page.getByRole('button', { name: 'Send report to developer' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    expect(asked(house, '/crashlog')).toHaveLength(0)
    await page.getByRole('button', { name: 'Send report to developer' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Send report to developer' }).click()
    await page.getByRole('heading', { name: 'Send report to developer' }).waitFor()
    expect(asked(house, '/crashlog')).toHaveLength(1)
  })

  test('copies the evidence of the latest crash for the developer', async () => {
    const { house, page } = await start()
    await page.getByRole('button', { name: 'Translations' }).waitFor()
    expect(await page.getByRole('button', { name: 'Copy for the developer' }).count()).toBe(0)
    house.hub().crash(HUE, 'Error: connect ECONNREFUSED 192.0.2.14')
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('button', { name: 'Copy for the developer' }).click()
    await page.getByText('Error connect ECONNREFUSED …').waitFor()
    const copied = await page.evaluate<string>('navigator.clipboard.readText()')
    expect(copied).toContain(`# Crash of ${HUE}`)
    expect(copied).not.toContain('192.0.2.14')
  })

  test('lists its topics, to copy', async () => {
    const { page } = await start()
    await page.getByText(`hub2mqtt/home/app/${HUE}/event`, { exact: true }).waitFor()
    await page.getByText('Commands', { exact: true }).click()
    await page
      .getByRole('region', { name: 'Topics' })
      .getByText(`hub2mqtt/home/app/${HUE}/cmd/restart`, { exact: true })
      .waitFor()
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('button', { name: `Copy hub2mqtt/home/app/${HUE}`, exact: true }).click()
    expect(await page.evaluate<string>('navigator.clipboard.readText()')).toBe(`hub2mqtt/home/app/${HUE}`)
  })

  test('shows what the guardian does and has detected, and turns it off', async () => {
    const config = { guard: { watch: ['*'], backoff: '1s' } }
    const { house, page } = await start({ config })
    const guardian = page.getByRole('region', { name: 'Guardian' })
    await guardian.getByText('watching', { exact: true }).waitFor()
    house.hub().crash(HUE, 'Error: the lamp is dark')
    const seen = page.getByRole('region', { name: 'Crashes and restarts' })
    await seen.getByText('Crash', { exact: true }).waitFor()
    await seen.getByText('Restart', { exact: true }).waitFor()
    await seeAny(seen, /by the guardian/)
    await guardian.getByRole('switch', { name: 'Watches this app' }).click()
    await guardian.getByText('off', { exact: true }).waitFor()
  })

  test('shows the complete crash message of an app, with its lines, and nothing else', async () => {
    const config = { guard: { watch: ['*'], backoff: '1h', backoff_max: '1h' } }
    const { house, page } = await start({ config })
    await page.getByRole('heading', { name: 'Lumen Lights' }).waitFor()
    const stack = Array.from({ length: 9 }, (_, i) => `    at Lamp.shine${i} (/app/lib/lamp.js:${i}:7)`)
    const said = ['TypeError: the lamp is dark', ...stack].join('\n')
    expect(said.length).toBeGreaterThan(300)
    house.hub().crash(HUE, said)
    const shown = (within: Locator) => within.locator('.said', { hasText: 'lamp is dark' })
    const notice = page.getByRole('region', { name: 'Latest crash' })
    const seen = page.getByRole('region', { name: 'Crashes and restarts' })
    const events = page.getByRole('region', { name: 'Events and commands' })
    for (const within of [notice, seen, events]) {
      await shown(within).waitFor()
      // Compare the rendered text, including its line breaks.
      expect(await shown(within).innerText()).toBe(said)
    }
    await seen.getByText('7.0.12', { exact: true }).waitFor()
    // The next crash must not change this text.
    house.hub().recover(HUE)
    await page.locator('.app-head').getByText('Running').waitFor()
    house.hub().crash(HUE, 'Error: the second')
    await seen.getByText('Error: the second', { exact: true }).waitFor()
    expect(await shown(seen).innerText()).toBe(said)
    // A restarted daemon did not see the crash itself, and has only the beginning of its message.
    await house.restart()
    await page.goto(house.page + HASH)
    await shown(seen).waitFor()
    expect(await shown(seen).innerText()).toMatch(/^TypeError: the lamp is dark at .*…$/)
  })

  test('fills the width of a large screen, and fits a small one with the longest version', async () => {
    const version = `7.0.12-${'x'.repeat(120)}`
    const { house, page } = await start({ hubs: { home: { apps: [{ id: HUE, name: 'Lumen Lights', version }] } } })
    await page.getByRole('heading', { name: 'Lumen Lights' }).waitFor()
    for (const width of [1440, 1920]) {
      await page.setViewportSize({ width, height: 900 })
      const gap = await page.evaluate<number>(`(() => {
        const right = (selector) => [...document.querySelectorAll(selector)].at(-1).getBoundingClientRect().right
        return right('.cards') - right('.column')
      })()`)
      expect(Math.abs(gap), `${width} px`).toBeLessThanOrEqual(1)
    }
    await page.setViewportSize({ width: 360, height: 740 })
    // Wait, because a chart adapts to the width a moment later.
    const fits = () => expect.poll(() => overflow(page)).toBeLessThanOrEqual(0)
    await fits()
    await page.goto(`${house.page}#/`)
    await page.locator('tr.app').getByText('7.0.12').waitFor()
    await fits()
  })

  test('switches automatic updates', async () => {
    const { house, page } = await start()
    await page.getByRole('switch', { name: 'Automatic updates', checked: true }).click()
    await page.getByRole('switch', { name: 'Automatic updates', checked: false }).waitFor()
    expect(house.hub().apps.get(HUE)?.autoupdate).toBe(false)
  })
})
