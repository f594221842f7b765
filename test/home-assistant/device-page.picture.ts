/** The screenshot of an app's page in a real Home Assistant, updated by `npm run pictures`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import { canBrowse, profile, quit, seeAny } from '../page/support/browser.ts'
import { appId, PUBLIC_URL, startHome } from './support/home.ts'
import { testedVersions } from './support/versions.ts'

const PUMP = appId('net_lindqvist_heatpump')

// Use the older version, because the newest version's page needs parts of Home Assistant that tests do not install.
const [version] = await testedVersions()

test.runIf(canBrowse && version?.runtime !== undefined)(
  'an app has a page with everything that is known about it',
  async () => {
    if (version === undefined) return
    await using home = await startHome(version)
    const { ha, world } = home
    await ha.finishOnboarding()
    await vi.waitFor(() => ha.untilState(`${PUMP}--update`, 'on'), { timeout: 60_000 })
    const { id } = await ha.device(PUMP)
    const context = await profile({ width: 1200, height: 1280 })
    const storage = { hassTokens: JSON.stringify(ha.login), dockedSidebar: '"always_hidden"' }
    await context.addInitScript((entries) => {
      for (const [key, value] of Object.entries(entries)) localStorage.setItem(key, value)
    }, storage)
    const page = await context.newPage()
    // Browsers load the icons from the bridge's public address, which is configured but does not exist.
    const icon = await fetch(`${world.hub.url}/app/net.lindqvist.heatpump/assets/icon.svg`)
    const body = await icon.text()
    await page.route(`${PUBLIC_URL}/**/icon`, (route) => route.fulfill({ contentType: 'image/svg+xml', body }))
    await page.goto(`${ha.url}/config/devices/device/${id}`)
    for (const text of ['Heat Pump', 'Restart', 'Running', 'Problem']) await seeAny(page, text)
    await page.evaluate('document.fonts.ready')
    const clip = { x: 96, y: 96, width: 676, height: 1180 }
    const png = await page.screenshot({ clip, animations: 'disabled' })
    await quit()
    expect(png.length).toBeGreaterThan(20_000)
    mkdirSync('docs/images', { recursive: true })
    writeFileSync('docs/images/home-assistant.png', png)
  },
)
