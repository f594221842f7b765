import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { mosquittoPath } from '../../support/brokers.ts'
import { required } from '../../support/skipped.ts'

const PROGRAM = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

/** Whether the page's tests can run. With REQUIRE_CHROMIUM=1, it is an error if there is no Chromium. */
export const canBrowse =
  mosquittoPath !== undefined &&
  required('CHROMIUM', existsSync(PROGRAM), 'the tests of the page', `they need Chromium, and there is no ${PROGRAM}`)

export type Theme = 'light' | 'dark'

export interface View {
  /** The fragment of the address, such as `#/bridge`. */
  readonly hash?: string
  readonly theme?: Theme
  readonly width?: number
  readonly height?: number
  /** The language of the browser; default: `en-GB`. */
  readonly locale?: string
  /** The time zone of the browser; default: that of the machine. */
  readonly timezone?: string
  /** The time of the browser's clock, in epoch milliseconds. */
  readonly now?: number
  /** The interval for everything that the page repeats each minute. */
  readonly minuteMs?: number
  /** Called before the page is opened, to add listeners and routes. */
  readonly prepare?: (page: Page) => unknown
}

let browser: Promise<Browser> | undefined

/** Starts the browser that all tests share. It exits with this process. */
export function launch(): Promise<Browser> {
  // CI runs as root, for which Chromium has no sandbox.
  browser ??= chromium.launch({ executablePath: PROGRAM, args: ['--no-sandbox'] })
  return browser
}

export async function quit(): Promise<void> {
  await (await browser)?.close()
  browser = undefined
}

/** A page that no test uses at the moment. It is kept, because opening a page takes longer than most tests. */
let spare: Page | undefined

/** Opens a page. Until the end of the test, it must have no errors and send no requests to other origins. */
export async function visit(url: string, view: View = {}, context?: BrowserContext): Promise<Page> {
  const { hash = '', theme: colorScheme = 'light', width = 1280, height = 900, prepare, ...special } = view
  const isPlain = context === undefined && Object.keys(special).length === 0
  const page = (isPlain && takeSpare()) || (await (context ?? (await profile(view))).newPage())
  if (context === undefined) {
    await page.setViewportSize({ width, height })
    await page.emulateMedia({ colorScheme })
  }
  const faults = watch(page, url)
  onTestFinished(async () => {
    if (isPlain && spare === undefined && (await empty(page))) spare = page
    else if (context === undefined) await page.context().close()
    else await page.close()
    expect(faults).toEqual([])
  })
  await prepare?.(page)
  await page.goto(url + hash)
  return page
}

function takeSpare(): Page | undefined {
  const page = spare
  spare = undefined
  return page
}

/** Resets a used page. Resolves to `false` if the page is closed or hangs. */
async function empty(page: Page): Promise<boolean> {
  try {
    page.removeAllListeners()
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await page.evaluate('localStorage.clear(); sessionStorage.clear()')
    await page.mouse.move(0, 0)
    await page.goto('about:blank')
    await page.context().clearCookies()
    await page.context().clearPermissions()
    return true
  } catch {
    return false
  }
}

export async function profile(view: View = {}): Promise<BrowserContext> {
  const { theme = 'light', width = 1280, height = 900, locale = 'en-GB', timezone, now, minuteMs } = view
  const context = await (await launch()).newContext({
    viewport: { width, height },
    colorScheme: theme,
    locale,
    reducedMotion: 'reduce',
    ...(timezone !== undefined && { timezoneId: timezone }),
  })
  if (now !== undefined) await context.clock.setFixedTime(now)
  if (minuteMs !== undefined) {
    await context.addInitScript(`{
      const real = setInterval
      globalThis.setInterval = (act, ms, ...more) => real(act, ms === 60_000 ? ${minuteMs} : ms, ...more)
    }`)
  }
  return context
}

/** Console messages that an offline daemon, a wrong password or an app without an icon causes. */
const EXPECTED = /^Failed to load resource: (net::ERR_|.*status of (401|403|404|429|5\d\d))|^WebSocket connection to/

function watch(page: Page, url: string): string[] {
  const faults: string[] = []
  const { host } = new URL(url)
  page.on('console', (message) => {
    if (message.type() === 'error' && !EXPECTED.test(message.text())) faults.push(message.text())
  })
  page.on('pageerror', (error) => faults.push(String(error)))
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    if (new URL(request.url()).host !== host) faults.push(`asked ${request.url()}`)
  })
  return faults
}

/** Waits for the only element with this text. */
export const see = (within: Page | Locator, text: string | RegExp) => within.getByText(text).waitFor()

/** Waits for at least one element with this text. There may be several, such as a row and a notice. */
export const seeAny = (within: Page | Locator, text: string | RegExp) => within.getByText(text).first().waitFor()

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** The call of the script axe. Each document loads the script only once, because loading takes longer than the call. */
const AXE_RUN = `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
  violations.map(({ id, nodes }) => [id, ...nodes.map(({ html, failureSummary }) => html.slice(0, 200) + failureSummary)]))`

export async function expectAccessible(page: Page): Promise<void> {
  // The page's content security policy blocks foreign scripts, so evaluate this script from outside.
  if (await page.evaluate<boolean>('globalThis.axe === undefined')) await page.evaluate(AXE)
  expect(await page.evaluate<unknown>(AXE_RUN)).toEqual([])
}

const PICTURES = join(tmpdir(), 'hub2mqtt-page')

/** With PICTURES=1, saves a screenshot in a temporary folder. */
export async function picture(page: Page, name: string, fullPage = false): Promise<void> {
  if (process.env['PICTURES'] === '1') await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage })
}

/** Returns by how many pixels the content is wider than the screen. */
export async function overflow(page: Page): Promise<number> {
  return await page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}
