/** With PICTURES=1, saves screenshots of all views. */
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DEFAULT_APPS } from '../../src/emulator/population.ts'
import { BridgeProcess } from '../support/bridge-process.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { canBrowse, expectAccessible, overflow, picture, seeAny, type Theme, visit } from './support/browser.ts'
import { House, logIn, PASSWORD } from './support/house.ts'
import { expectTranslated, marked, STUCK } from './support/translated.ts'

const SIZES = [
  { width: 1280, height: 860 },
  { width: 768, height: 1024 },
  { width: 360, height: 740 },
]
const THEMES: readonly Theme[] = ['light', 'dark']

let open: House
let closed: House
let shared: House
let unconfigured: BridgeProcess
let setupPage: string

beforeAll(async () => {
  if (!canBrowse) return
  const cabin = DEFAULT_APPS.slice(2, 6).map((app) => ({ ...app, id: `${app.id}.cabin` }))
  const hubs = { home: { usageMs: 400 }, cabin: { usageMs: 400, apps: cabin } }
  const config = { commands: { deny: ['get-std'] }, guard: { watch: ['*'], backoff: '10m', backoff_max: '10m' } }
  const scopes = ['hub.app', 'hub.speech', 'hub.system.readonly']
  open = await House.start({ hubs, config, scopes })
  closed = await House.start({ config: { http: { password: PASSWORD } }, scopes: ['hub.app.readonly'] })
  const rooms = Object.fromEntries(['attic', 'barn', 'cabin', 'garage', 'home', 'loft'].map((name) => [name, {}]))
  shared = await House.start({ hubs: rooms, config: { fleet: { shard: '2/2' } } })
  unconfigured = new BridgeProcess({ env: { HUB2MQTT_HTTP_PORT: String(await freePort()) } })
  setupPage = await unconfigured.page()
})
afterAll(async () => {
  await open?.[Symbol.asyncDispose]()
  await closed?.[Symbol.asyncDispose]()
  await shared?.[Symbol.asyncDispose]()
  await unconfigured?.stop()
})

interface View {
  readonly hash?: string
  readonly ready: (page: Page) => Promise<unknown>
  /** The address of the page; default: that of `open`. */
  readonly at?: () => string
}

const heading = (name: string) => (page: Page) => page.getByRole('heading', { name }).waitFor()
const app = (page: Page) => page.getByRole('row').filter({ hasText: 'Lumen Lights' }).getByText('Running').waitFor()

const VIEWS: Readonly<Record<string, View>> = {
  apps: { ready: app },
  selection: {
    async ready(page) {
      await page.getByRole('checkbox', { name: 'Select Heat Pump' }).check()
      await page.getByRole('checkbox', { name: 'Select Lumen Lights' }).check()
      await page.getByText('2 selected').waitFor()
      await page.getByRole('button', { name: 'More for the selected apps' }).click()
    },
  },
  menu: {
    async ready(page) {
      await page.getByRole('button', { name: 'More for Heat Pump' }).click()
      await page.getByRole('menuitem', { name: /Uninstall/ }).waitFor()
    },
  },
  languages: {
    async ready(page) {
      await page.getByRole('button', { name: 'Language' }).click()
      await page.getByRole('menu').waitFor()
    },
  },
  keys: {
    async ready(page) {
      await app(page)
      await page.keyboard.press('?')
      await page.getByRole('dialog').waitFor()
    },
  },
  'question for several': {
    async ready(page) {
      await page.getByRole('button', { name: 'Update all (1)' }).click()
      await page.getByRole('dialog').getByText('2.4.1 → 2.5.0').waitFor()
    },
  },
  progress: {
    async ready(page) {
      await page.getByRole('checkbox', { name: 'Select Doorbell' }).last().check()
      await page.getByRole('checkbox', { name: 'Select Lumen Lights' }).check()
      open.hub().behave('answer-status', { operation: 'restartApp', status: 500, times: 1 })
      await page.getByRole('region', { name: 'Selected apps' }).getByRole('button', { name: 'Restart' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Restart' }).click()
      await page.getByText(/Stopped: .*Doorbell.* failed/).waitFor()
    },
  },
  question: {
    async ready(page) {
      await page.getByRole('switch', { name: 'Lumen Lights enabled' }).click()
      await page.getByRole('dialog').waitFor()
    },
  },
  app: {
    hash: '#/app/home/com.athom.hue',
    async ready(page) {
      await page.getByRole('button', { name: 'Read settings' }).click()
      await page.getByRole('button', { name: 'Show values' }).click()
      await page.getByRole('button', { name: 'Change the value' }).first().click()
      await page.getByRole('button', { name: 'The hub’s record' }).click()
      await page.getByRole('combobox', { name: 'Action' }).selectOption('events')
      await page.getByRole('slider').first().press('ArrowLeft')
      await page.getByRole('button', { name: 'Restart' }).click()
      await page.getByText(/Lumen Lights.* – .*Restart/).waitFor()
    },
  },
  crashed: { hash: '#/app/home/nl.vandermolen.doorbell', ready: heading('Doorbell') },
  activity: {
    hash: '#/activity',
    async ready(page) {
      await heading('Activity')(page)
      open.hub().crash('org.tidewater.meter', STUCK)
      open.hub().recover('org.tidewater.meter')
      await page.getByText(STUCK).first().waitFor()
    },
  },
  bridge: {
    hash: '#/bridge',
    async ready(page) {
      await heading('Hub home')(page)
      await page
        .getByText(/commands? (is|are) unavailable/)
        .first()
        .click()
    },
  },
  log: {
    hash: '#/log',
    ready: (page) => page.getByRole('row').filter({ hasText: 'hub2mqtt started' }).waitFor(),
  },
  fleet: { hash: '#/bridge', ready: heading('Hubs of other members'), at: () => shared.page },
  login: { ready: heading('hub2mqtt'), at: () => closed.page },
  readers: {
    at: () => closed.page,
    async ready(page) {
      await logIn(page)
      await app(page)
    },
  },
  setup: {
    at: () => setupPage,
    async ready(page) {
      await page.getByLabel('Use an existing broker').check()
    },
  },
  // This view must be the last one, because its hub and the broker stay offline.
  away: {
    async ready(page) {
      await open.hub('cabin').close()
      await open.broker.stop()
      await seeAny(page, /hub .*is offline/)
      await seeAny(page, /no connection to the MQTT broker/)
    },
  },
}

const OVERLAYS = new Set(['menu', 'languages', 'keys', 'question', 'question for several', 'progress', 'selection'])

test.runIf(canBrowse)(
  'the theme is that of the system until one is chosen, which stays and colours the window',
  async () => {
    const page = await visit(open.page)
    const ground = () => page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor')
    const colour = () =>
      page.evaluate<string>(`[...document.querySelectorAll('meta[name=theme-color]')]
      .find(({ media }) => matchMedia(media).matches).content`)
    await page.getByRole('button', { name: 'Theme: system' }).waitFor()
    const light = await ground()
    expect(await colour()).toBe('#ffffff')
    await page.getByRole('button', { name: 'Theme: system' }).click()
    await page.getByRole('button', { name: 'Theme: light' }).click()
    await page.getByRole('button', { name: 'Theme: dark' }).waitFor()
    expect(await ground()).not.toBe(light)
    expect(await colour()).toBe('#191f26')
    await page.reload()
    await page.getByRole('button', { name: 'Theme: dark' }).click()
    expect(await ground()).toBe(light)
  },
)

test.runIf(canBrowse)('the row of a crashed app is tinted, in both themes', async () => {
  const page = await visit(open.page)
  await seeAny(page.getByRole('row').filter({ hasText: 'Doorbell' }), /^Crashed/)
  const ground = (selector: string) =>
    page.evaluate<string>(`getComputedStyle(document.querySelector('${selector}')).backgroundColor`)
  for (const colorScheme of THEMES) {
    await page.emulateMedia({ colorScheme })
    expect(await ground('tr.crashed'), colorScheme).not.toBe(await ground('tr.app:not(.crashed)'))
  }
})

test.runIf(canBrowse)('the colours of the system hide neither a switch nor what is chosen', async () => {
  // Set a time zone to get a new profile; otherwise, the next test would get the forced colours.
  const page = await visit(open.page, { timezone: 'UTC' })
  await app(page)
  await page.emulateMedia({ forcedColors: 'active' })
  const lookOf = async (one: Locator) => (await one.screenshot()).toString('base64')
  const row = (name: string) => page.getByRole('row').filter({ hasText: name })
  const on = await lookOf(row('Lumen Lights').getByRole('switch', { checked: true }))
  expect(await lookOf(row('Bramblewood Blinds').getByRole('switch', { checked: false }).first())).not.toBe(on)
  const all = page.getByRole('button', { name: /^All / })
  const pressed = await lookOf(all)
  await page.getByRole('button', { name: /^Crashed / }).click()
  expect(await lookOf(all)).not.toBe(pressed)
  const apps = page.getByRole('navigation').getByRole('link', { name: 'Apps' })
  const current = await lookOf(apps)
  await page.getByRole('link', { name: 'Activity' }).click()
  expect(await lookOf(apps)).not.toBe(current)
})

describe.runIf(canBrowse).each(Object.entries(VIEWS))(
  'the view %s',
  (name, { hash = '', ready, at = () => open.page }) => {
    test('mixes no languages', async () => {
      const page = await visit(at(), { hash }, await marked())
      await ready(page)
      await expectTranslated(page)
    })

    test('is accessible, in both themes', async () => {
      let page: Page | undefined
      for (const size of SIZES) {
        // Open the page again for menus and dialogs, because they close when the size changes.
        if (page === undefined || OVERLAYS.has(name)) {
          page = await visit(at(), { hash, ...size })
          await ready(page)
        } else await page.setViewportSize(size)
        // Wait until the charts have adapted to the size of their containers.
        await until(`${size.width} px`, async () => page !== undefined && (await overflow(page)) <= 0)
        for (const colorScheme of THEMES) {
          await page.emulateMedia({ colorScheme })
          await picture(page, `${name}-${colorScheme}-${size.width}`, !name.startsWith('question'))
          await expectAccessible(page)
        }
        expect(await page.locator('.primary').count(), 'primary buttons').toBeLessThanOrEqual(1)
      }
    })
  },
)
