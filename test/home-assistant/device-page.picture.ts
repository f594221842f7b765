/** The screenshot of an app's page in a real Home Assistant, updated by `npm run pictures`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import { hasProgram } from '../support/skipped.ts'
import { picture } from './support/browser.ts'
import { appId, Home } from './support/home.ts'
import { testedVersions } from './support/versions.ts'

const CHROMIUM = process.env['CHROMIUM'] ?? 'chromium'
const PUMP = appId('net_lindqvist_heatpump')

// Use the older version, because the newest version's page needs parts of Home Assistant that tests do not install.
const [version] = await testedVersions()
const hasChromium = hasProgram(CHROMIUM, ['--version'], 'the picture', 'apt-get install chromium')

test.runIf(hasChromium && version?.runtime !== undefined)(
  'an app has a page with everything that is known about it',
  async () => {
    if (version === undefined) return
    await using home = await Home.start(version)
    await home.ha.finishOnboarding()
    await vi.waitFor(() => home.untilState(`${PUMP}--update`, 'on'), { timeout: 60_000 })
    const { id } = await home.device(PUMP)
    const png = await picture(CHROMIUM, {
      url: `${home.ha.url}/config/devices/device/${id}`,
      storage: { hassTokens: JSON.stringify(home.ha.login), dockedSidebar: '"always_hidden"' },
      width: 1200,
      height: 1280,
      clip: { x: 96, y: 96, width: 676, height: 1180 },
      complete: ['Heat Pump', 'Restart', 'Running', 'Problem'],
    })
    expect(png.length).toBeGreaterThan(20_000)
    mkdirSync('docs/images', { recursive: true })
    writeFileSync('docs/images/home-assistant.png', png)
  },
)
