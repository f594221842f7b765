/** The pictures of the page in the documentation: `npm run pictures` makes them anew. */
import { mkdirSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { DEFAULT_APPS } from '../../src/emulator/population.ts'
import { exitOnSignals } from '../support/process.ts'
import { profile, quit } from './support/browser.ts'
import { House } from './support/house.ts'

const WIDTH = 1180
/** Until the lines of the usage fill their width. */
const WAIT_MS = 150_000
const METER = 'org.tidewater.meter'

exitOnSignals()
mkdirSync('docs/images', { recursive: true })

const config = { guard: { watch: [METER], backoff: '1s' } }
await using house = await House.start({ hubs: { home: { usageMs: 3_000, apps: DEFAULT_APPS } }, config })
await pause(WAIT_MS / 3)
house.hub().crash(METER, 'Error: read ETIMEDOUT 192.0.2.31:502')
await pause((WAIT_MS * 2) / 3)
for (const [name, hash, theme, height] of [
  ['page-apps', '', 'light', 610],
  ['page-app', `#/app/home/${METER}`, 'dark', 760],
] as const) {
  const context = await profile({ theme, width: WIDTH, height })
  const page = await context.newPage()
  await page.goto(house.page + hash)
  await page.getByText('Tidewater Energy Meter').first().waitFor()
  await page.waitForLoadState('networkidle')
  await page.screenshot({ path: `docs/images/${name}.png` })
  await context.close()
}
await quit()
