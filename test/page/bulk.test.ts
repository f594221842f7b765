import type { Page, WebSocketRoute } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import type { LiveFrame } from '../../src/web/server/api/protocol.ts'
import { until } from '../support/until.ts'
import { canBrowse, expectAccessible, overflow, profile, see, visit } from './support/browser.ts'
import { asked, House, logIn, PASSWORD, rowWith, show, startHouse } from './support/house.ts'

const NAMES = ['Backyard Weather', 'Heat Pump', 'Lumen Lights']
const IDS = ['com.parkstreet.weather', 'net.lindqvist.heatpump', 'com.athom.hue']

const bar = (page: Page) => page.getByRole('region', { name: 'Selected apps' })
const dialog = (page: Page) => page.getByRole('dialog')
const progress = (page: Page, action: string) => page.getByRole('region', { name: action, exact: true })
const restarted = (house: Pick<House, 'hub'>) => asked(house, '/restart').map(({ path }) => path.split('/').at(-2))
const installs = (house: House) => house.hub().requests.filter(({ operation }) => operation === 'installFromAppStore')

async function select(page: Page, names = NAMES): Promise<void> {
  for (const name of names) await page.getByRole('checkbox', { name: `Select ${name}` }).check()
  await page.getByText(`${names.length} selected`).waitFor()
}

async function start(page: Page, action: string): Promise<void> {
  const button = bar(page).getByRole('button', { name: action, exact: true })
  if ((await button.count()) > 0) await button.click()
  else {
    await bar(page).getByRole('button', { name: 'More for the selected apps' }).click()
    await page.getByRole('menuitem', { name: action }).click()
  }
  await dialog(page).getByRole('button', { name: action }).click()
}

/** Starts a restart of all apps. Resolves when the hub has received the first request, which it answers slowly. */
async function startSlowRestart(house: Pick<House, 'hub'>, page: Page): Promise<void> {
  await select(page)
  house.hub().behave('slow-headers', { operation: 'restartApp', ms: 20_000 })
  await start(page, 'Restart')
  await until('the first request', () => restarted(house).length === 1)
}

const outdated = Array.from({ length: 3 }, (_, i) => ({
  id: `com.old${i}`,
  name: `Old ${i}`,
  version: '1.0.0',
  update: `${i + 1}.1.0`,
  autoupdate: false,
}))

/** Adds changelogs for version 1.1.0 to a snapshot. `news` maps each app to its changelog. */
function withNews(frame: string, news: Readonly<Record<string, string>>): string {
  const read: LiveFrame = JSON.parse(frame)
  if (read.type !== 'snapshot') return frame
  const state = read.state.map(([topic, payload]) => {
    const summary = news[/com\.(\w+)\/update$/.exec(topic)?.[1] ?? '']
    if (summary === undefined) return [topic, payload]
    const update = { ...JSON.parse(payload), release_summary: summary, latest_version: '1.1.0' }
    return [topic, JSON.stringify(update)]
  })
  return JSON.stringify({ ...read, state })
}

describe.runIf(canBrowse)('an action on several apps', () => {
  test('names apps that have the same name by their ids', async () => {
    const apps = ['com.twin.one', 'com.twin.two', 'com.example.lamp']
    const named = apps.map((id) => ({ id, name: id.startsWith('com.twin') ? 'Twin' : 'Lamp' }))
    const { page } = await show({ hubs: { home: { apps: named } } })
    await page.getByRole('checkbox', { name: 'Select all shown' }).check()
    await bar(page).getByRole('button', { name: 'Restart', exact: true }).click()
    const listed = (await dialog(page).getByRole('listitem').allInnerTexts()).map((line) => line.trim())
    expect(listed.sort()).toEqual(['Lamp', 'Twin (com.twin.one)', 'Twin (com.twin.two)'])
  })

  test('stops at the first failure, shows the reason and the remaining apps, and continues without the failed app on request', async () => {
    const { house, page } = await show()
    const bodies: string[] = []
    page.on('request', (request) => {
      if (request.method() === 'POST') bodies.push(request.postData() ?? '')
    })
    await select(page)
    house.hub().behave('lose-events')
    house.hub().uninstall('net.lindqvist.heatpump')
    await start(page, 'Restart')
    const shown = progress(page, 'Restart')
    await shown.getByText('Stopped: Heat Pump failed').waitFor()
    await shown.getByText('1 done, 1 failed').waitFor()
    await shown.getByText(/^Heat Pump: Restart: ./).waitFor()
    await shown.getByText('Left: Lumen Lights').waitFor()
    expect(restarted(house)).toEqual(IDS.slice(0, 2))
    await expectAccessible(page)
    await shown.getByRole('button', { name: 'Continue' }).click()
    await shown.getByText('All done').waitFor()
    await shown.getByText('2 done, 1 failed').waitFor()
    expect(restarted(house)).toEqual(IDS)
    await shown.getByRole('button', { name: 'Close' }).click()
    await shown.waitFor({ state: 'detached' })
    // Each request needs its own transaction, by which the bridge recognises a request that a browser has repeated.
    expect(new Set(bodies).size).toBe(3)
    for (const body of bodies) expect(body).toMatch(/"transaction":"[0-9a-f-]{20,}"/)
  })

  test('stops on request, also from another view, and shows the remaining apps', async () => {
    const { house, page } = await show()
    await select(page)
    house.hub().behave('slow-headers', { operation: 'restartApp', ms: 1_500 })
    await start(page, 'Restart')
    await page.getByRole('link', { name: 'Activity' }).click()
    await page.getByRole('heading', { name: 'Activity' }).waitFor()
    const shown = progress(page, 'Restart')
    await shown.getByRole('button', { name: 'Stop' }).click()
    await shown.getByText('Stopped by you').waitFor()
    await shown.getByText(/^Left: .*Lumen Lights$/).waitFor()
    expect(restarted(house).length).toBeLessThan(3)
  })

  test('sends nothing twice when the daemon ends during the action, and continues when it is back', async () => {
    await using house = await House.startApart({ config: { http: { password: PASSWORD } } })
    const page = await visit(house.url)
    await logIn(page)
    await startSlowRestart(house, page)
    await house.daemon.stop('SIGKILL')
    await progress(page, 'Restart').getByText('Stopped: Backyard Weather failed').waitFor()
    await see(progress(page, 'Restart'), /hub2mqtt does not answer/)
    await page.getByText('No connection to hub2mqtt').waitFor()
    await progress(page, 'Restart')
      .getByRole('button', { name: /^Continue \(There is no connection/ })
      .waitFor()
    house.hub().behaveWell()
    await house.start()
    // Log in again, because sessions do not survive a restart of the daemon.
    await logIn(page)
    await rowWith(page, 'Lumen Lights').getByText('Running').waitFor()
    await progress(page, 'Restart').getByRole('button', { name: 'Continue' }).click()
    await progress(page, 'Restart').getByText('All done').waitFor()
    expect(restarted(house)).toEqual(IDS)
  })

  test('offers the next action while the result of the previous one is still shown', async () => {
    const { house, page } = await show()
    await select(page, NAMES.slice(0, 2))
    await start(page, 'Restart')
    await progress(page, 'Restart').getByText('All done').waitFor()
    const position = () => page.evaluate<string>(`getComputedStyle(document.querySelector('.bulk.progress')).position`)
    expect(await position()).toBe('sticky')
    await select(page, NAMES.slice(0, 2))
    // Two sticky bars would overlap, so the result must not be sticky.
    expect(await position()).toBe('static')
    await start(page, 'Restart')
    await until('four restarts', () => restarted(house).length === 4)
    // A new action would discard the remaining apps of a failed one, so the user must end that first.
    house.hub().behave('answer-status', { operation: 'restartApp', status: 500, times: 1 })
    await progress(page, 'Restart').getByText('All done').waitFor()
    await select(page, NAMES.slice(0, 2))
    await start(page, 'Restart')
    await progress(page, 'Restart')
      .getByText(/^Stopped/)
      .waitFor()
    await page.getByRole('checkbox', { name: 'Select Lumen Lights' }).check()
    expect(await bar(page).count()).toBe(0)
  })

  test('waits before the next app if the connection is lost in between, and omits none', async () => {
    const house = await startHouse()
    await using context = await profile()
    let isCut = false
    const open = new Set<WebSocketRoute>()
    await context.routeWebSocket(/api\/live/, (socket) => {
      if (isCut) void socket.close()
      else {
        socket.connectToServer()
        open.add(socket)
      }
    })
    const page = await visit(house.page, {}, context)
    await select(page)
    house.hub().behave('slow-headers', { operation: 'restartApp', ms: 2_000, times: 1 })
    await start(page, 'Restart')
    await until('the first request', () => restarted(house).length === 1)
    isCut = true
    for (const socket of open) void socket.close()
    await progress(page, 'Restart').getByText('Stopped: no connection').waitFor()
    await progress(page, 'Restart').getByText('Left: Heat Pump, Lumen Lights').waitFor()
    expect(restarted(house)).toEqual(IDS.slice(0, 1))
    isCut = false
    await page.getByText('No connection to hub2mqtt').waitFor({ state: 'detached' })
    await progress(page, 'Restart').getByRole('button', { name: 'Continue' }).click()
    await progress(page, 'Restart').getByText('3 done').waitFor()
    expect(restarted(house)).toEqual(IDS)
  })

  test('can be stopped while there is no connection and no answer', async () => {
    await using house = await House.startApart()
    const page = await visit(house.page)
    await startSlowRestart(house, page)
    // A suspended daemon processes nothing, and closes no connection.
    process.kill(house.daemon.pid, 'SIGSTOP')
    await page.getByText('No connection to hub2mqtt').waitFor()
    await progress(page, 'Restart').getByRole('button', { name: 'Stop' }).click()
    await progress(page, 'Restart').getByText('Stopped by you').waitFor()
    await page.getByText('Backyard Weather: The connection was lost before the answer arrived').waitFor()
    house.hub().behaveWell()
    process.kill(house.daemon.pid, 'SIGCONT')
    await page.getByText('No connection to hub2mqtt').waitFor({ state: 'detached' })
    await progress(page, 'Restart').getByRole('button', { name: 'Continue' }).click()
    await progress(page, 'Restart').getByText('All done').waitFor()
    expect(restarted(house)).toEqual(IDS)
  })

  test('skips apps that are removed or no longer need it when their turn comes', async () => {
    const { house, page } = await show({ hubs: { home: { apps: outdated } } })
    house.hub().behave('slow-headers', { operation: 'installFromAppStore', ms: 1_500 })
    await page.getByRole('button', { name: 'Update all (3)' }).click()
    await dialog(page).getByRole('button', { name: 'Update' }).click()
    await until('the first update', () => installs(house).length === 1)
    house.hub().uninstall('com.old1')
    await rowWith(page, 'Old 1').waitFor({ state: 'detached' })
    await progress(page, 'Update').getByText('All done').waitFor()
    await progress(page, 'Update').getByText('2 done, 1 skipped').waitFor()
    expect(installs(house)).toHaveLength(2)
  })
})

describe.runIf(canBrowse)('the question before', () => {
  test('an update of all apps lists the versions of each, and nothing is installed unless it is confirmed', async () => {
    const { house, page } = await show({ hubs: { home: { apps: outdated } } })
    await page.getByRole('button', { name: 'Update all (3)' }).click()
    await dialog(page).getByRole('heading', { name: 'Update 3 apps?' }).waitFor()
    expect(await dialog(page).getByRole('listitem').allInnerTexts()).toEqual([
      'Old 0 1.0.0 → 1.1.0 (minor)',
      'Old 1 1.0.0 → 2.1.0 (major)',
      'Old 2 1.0.0 → 3.1.0 (major)',
    ])
    await expectAccessible(page)
    await dialog(page).getByRole('button', { name: 'Cancel' }).click()
    expect(installs(house)).toHaveLength(0)
    await page.getByRole('button', { name: 'Update all (3)' }).click()
    await dialog(page).getByRole('button', { name: 'Update' }).click()
    await rowWith(page, 'Old 2').getByText('3.1.0', { exact: true }).waitFor()
    await page.getByRole('button', { name: /^Update all/ }).waitFor({ state: 'detached' })
    expect(installs(house)).toHaveLength(3)
  })

  test('an update has the changelog of that version if it is known, as text, for one app and for several', async () => {
    const house = await startHouse({ hubs: { home: { apps: outdated } } })
    await using context = await profile()
    const news = `<b>Bold</b> \u202e and ${'very '.repeat(45)}long`
    await context.routeWebSocket(/api\/live/, (socket) => {
      socket.connectToServer().onMessage((frame) => socket.send(withNews(String(frame), { old0: news, old1: news })))
    })
    const page = await visit(house.page, { width: 360 }, context)
    await page.getByRole('button', { name: 'Update all (3)' }).click()
    const items = dialog(page).getByRole('listitem')
    await items.first().getByText(news).waitFor()
    const [first, second, third] = await items.allInnerTexts()
    expect(first).toBe(`Old 0 1.0.0 → 1.1.0 (minor)\n${news}`)
    // The page does not show the other changelogs, because they are for versions that are not offered.
    expect([second, third]).toEqual(['Old 1 1.0.0 → 2.1.0 (major)', 'Old 2 1.0.0 → 3.1.0 (major)'])
    expect(await overflow(page)).toBeLessThanOrEqual(0)
    await expectAccessible(page)
    await dialog(page).getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'More for Old 0' }).click()
    await page.getByRole('menuitem', { name: 'Update' }).click()
    await dialog(page).getByRole('heading', { name: 'Update Old 0?' }).waitFor()
    expect(await items.allInnerTexts()).toEqual([`Old 0 1.0.0 → 1.1.0 (minor)\n${news}`])
    await dialog(page).getByRole('button', { name: 'Cancel' }).click()
    expect(installs(house)).toHaveLength(0)
  })

  test('a selection has the number of apps for which the action is not possible, with the reason', async () => {
    const { house, page } = await show({ hubs: { home: {}, cabin: { apps: outdated } } })
    await page.getByRole('checkbox', { name: 'Select all shown' }).check()
    await page.getByText('11 selected').waitFor()
    await house.hub('cabin').close()
    await page.getByRole('status').filter({ hasText: '1 hub is offline: cabin' }).waitFor()
    await bar(page).getByRole('button', { name: 'Update', exact: true }).click()
    await dialog(page).getByRole('heading', { name: 'Update 1 app?' }).waitFor()
    await dialog(page).getByText('10 of the selected apps are left out: The hub is offline.').waitFor()
    expect(await dialog(page).getByRole('listitem').allInnerTexts()).toEqual(['Heat Pump (home) 2.4.1 → 2.5.0 (minor)'])
  })

  test('disabling and enabling several lists their names, and both are done', async () => {
    const { house, page } = await show()
    const enabled = () => IDS.map((id) => house.hub().apps.get(id)?.enabled)
    for (const [action, is] of [
      ['Disable', false],
      ['Enable', true],
    ] as const) {
      await select(page)
      await start(page, action)
      await progress(page, action).getByText('All done').waitFor()
      await progress(page, action).getByRole('button', { name: 'Close' }).click()
      expect(enabled()).toEqual([is, is, is])
    }
  })
})

describe.runIf(canBrowse)('the selection', () => {
  test('selects all apps that the list shows, and no others', async () => {
    const { page } = await show()
    const all = page.getByRole('checkbox', { name: 'Select all shown' })
    await page.getByRole('searchbox').fill('er')
    await rowWith(page, 'Lumen Lights').waitFor({ state: 'detached' })
    await all.check()
    const shown = await page.locator('tr.app').count()
    await page.getByText(`${shown} selected`).waitFor()
    await page.getByRole('searchbox').fill('')
    await rowWith(page, 'Lumen Lights').waitFor()
    expect(await page.evaluate<boolean>('document.querySelector("th input").indeterminate')).toBe(true)
    expect(await page.locator('tr.app.selected').count()).toBe(shown)
    await bar(page).getByRole('button', { name: 'Clear' }).click()
    await bar(page).waitFor({ state: 'detached' })
  })

  test('offers nothing to readers, with the reason', async () => {
    const house = await startHouse()
    const page = await visit(house.url)
    await select(page)
    await bar(page)
      .getByRole('button', { name: /^Restart \(You have read-only access/ })
      .click({ force: true })
    await page.getByRole('button', { name: /^Update all.*\(You have read-only access/ }).click({ force: true })
    expect(await dialog(page).count()).toBe(0)
  })
})
