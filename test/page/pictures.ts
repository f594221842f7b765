/** `npm run pictures` takes the screenshots for the documentation from the demo. */
import { mkdirSync } from 'node:fs'
import { freePort } from '../support/ports.ts'
import { exitOnSignals, Process } from '../support/process.ts'
import { profile, quit } from './support/browser.ts'

const WIDTH = 1180
const DOORBELL = 'nl.vandermolen.doorbell'
/** Time limit until the app crashes again. By then, the charts of its usage are full. */
const CRASH_MS = 150_000

exitOnSignals()
mkdirSync('docs/images', { recursive: true })

await using demo = new Process(process.execPath, ['src/bin.js', 'demo'], {
  env: {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    HUB2MQTT_HTTP_PORT: String(await freePort()),
    HUB2MQTT_MQTT_EMBEDDED_PORT: String(await freePort()),
    HUB2MQTT_GUARD_WATCH: DOORBELL,
  },
  output: 'keep',
})
const [address = ''] = /http:\S+/.exec(await demo.untilLine('?token=', 30_000)) ?? []
/** Wait for the counts above the list, which change a moment later than its rows. */
const app = `main:has(.filters .bad) tr.app:has-text("${DOORBELL}")`
for (const { name, hash, theme, height, ready } of [
  { name: 'page-apps', hash: '', theme: 'light', height: 455, ready: `${app} >> text=Crashed ×2` },
  { name: 'page-app', hash: `#/app/home/${DOORBELL}`, theme: 'dark', height: 760, ready: '.app-head >> text=Running' },
] as const) {
  const context = await profile({ theme, width: WIDTH, height })
  const page = await context.newPage()
  await page.goto(address + hash)
  await page.locator(ready).waitFor({ timeout: CRASH_MS })
  await page.waitForLoadState('networkidle')
  await page.screenshot({ path: `docs/images/${name}.png` })
  await context.close()
}
await quit()
