import { execFileSync } from 'node:child_process'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import type { Observer } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { canBrowse, expectAccessible, overflow, see } from './support/browser.ts'
import { show } from './support/house.ts'

const ID = `org.odd 'x' $(id) {{ y }} "z"`

const automate = (page: Page) => page.getByRole('region', { name: 'Automate' })

async function copied(page: Page, program: string): Promise<string> {
  await automate(page)
    .getByRole('button', { name: `Copy for ${program}`, exact: true })
    .click()
  return await page.evaluate<string>('navigator.clipboard.readText()')
}

async function publish(observer: Observer, line: string): Promise<void> {
  const words = execFileSync('sh', ['-c', `mosquitto_pub() { printf '%s\\0' "$@"; }; ${line}`])
    .toString()
    .split('\0')
  const [qos, , , topic = '', how, payload = ''] = words
  expect([qos, ['-n', '-m'].includes(how ?? '')]).toEqual(['-q', true])
  await observer.publish(topic, payload)
}

describe.runIf(canBrowse)('the text for other programs', () => {
  test('can be copied for each action of an app, below the configured base topic, and has its effect', async () => {
    const hubs = { cabin: { apps: [{ id: ID, name: 'Odd', version: '1.0.0' }] } }
    const config = { mqtt: { base_topic: "the 'house'/{{ a }}" }, commands: { allow: ['uninstall'] } }
    const { house, page } = await show({ hubs, config }, { hash: `#/app/cabin/${encodeURIComponent(ID)}` })
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await automate(page).getByText('none', { exact: true }).waitFor()
    await publish(house.observer, await copied(page, 'Shell'))
    await until('the restart', () => house.hub('cabin').requests.some(({ path }) => path.endsWith('/restart')))
    await automate(page).getByLabel('Action').selectOption('uninstall')
    await publish(house.observer, await copied(page, 'Shell'))
    await until('no app', () => house.hub('cabin').apps.get(ID) === undefined)
  })

  test('is a script for Home Assistant and a flow for Node-RED, with the reason if the action is refused', async () => {
    const config = { commands: { deny: ['restart'] } }
    const { page } = await show({ config }, { hash: '#/app/home/com.athom.hue', width: 360, height: 740 })
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await see(automate(page), /refuses this action: commands\.deny/)
    const topic = 'hub2mqtt/home/app/com.athom.hue/cmd/restart'
    expect(parse(await copied(page, 'Home Assistant')).sequence[0].data).toEqual({ topic, payload: '', qos: 1 })
    expect(JSON.parse(await copied(page, 'Node-RED'))[1]).toMatchObject({ type: 'mqtt out', topic, retain: 'false' })
    await automate(page).getByLabel('Action').selectOption('events')
    expect(parse(await copied(page, 'Home Assistant')).triggers).toEqual([
      { trigger: 'mqtt', topic: 'hub2mqtt/home/app/com.athom.hue/event' },
    ])
    await expectAccessible(page)
    expect(await overflow(page)).toBeLessThanOrEqual(0)
  })
})
