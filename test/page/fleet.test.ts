import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ownerOf } from '../../src/cluster/fleet.ts'
import { BridgeProcess } from '../support/bridge-process.ts'
import { freePort } from '../support/ports.ts'
import { canBrowse, see, visit } from './support/browser.ts'
import { House, rowWith, show } from './support/house.ts'

const MEMBERS = ['shard-1', 'shard-2']
const ROOMS = ['attic', 'barn', 'cabin', 'garage', 'home', 'loft', 'office', 'shed', 'studio', 'villa']
const of = (member: string) => ROOMS.filter((hub) => ownerOf(hub, MEMBERS) === member).slice(0, 2)
const OWN = of('shard-1')
const OTHERS = of('shard-2')
const [hub = ''] = OWN
const [other = ''] = OTHERS

let house: House
beforeAll(async () => {
  const hubs = Object.fromEntries([...OWN, ...OTHERS].map((name) => [name, {}]))
  if (canBrowse) house = await House.start({ hubs, config: { fleet: { shard: '1/2' } } })
})
afterAll(() => house?.[Symbol.asyncDispose]())

const fleetOf = (page: Page) => page.getByRole('region', { name: 'Fleet' })
const rowOf = (page: Page, table: string, name: string) =>
  fleetOf(page).getByRole('table', { name: table, exact: true }).getByRole('row').filter({ hasText: name })

describe.runIf(canBrowse)('the page of a member of a fleet', () => {
  test('shows the member itself, like that of a single bridge', async () => {
    const page = await visit(house.page, { hash: '#/bridge' })
    const bridge = page.getByRole('region', { name: 'Bridge', exact: true })
    await bridge.getByText('all is well').waitFor()
    await bridge.getByText('Started').waitFor()
    expect(await bridge.getByRole('combobox', { name: 'Log level' }).inputValue()).toBe('info')
    const broker = page.getByRole('region', { name: 'MQTT broker' })
    await broker.getByText('connected').waitFor()
    await broker.getByText('online').waitFor()
    expect(await page.getByText('The bridge has no connection to the MQTT broker').count()).toBe(0)
  })

  test('shows its own hubs with their owner, and those of others with theirs', async () => {
    const page = await visit(house.page, { hash: '#/bridge' })
    await see(page.getByRole('region', { name: `Hub ${hub}` }), 'shard-1')
    for (const name of OTHERS) {
      await rowOf(page, 'Hubs of other members', name).getByText('shard-2').waitFor()
      expect(await page.getByRole('region', { name: `Hub ${name}` }).count()).toBe(0)
    }
    expect(await rowOf(page, 'Hubs of other members', hub).count()).toBe(0)
    await page.goto(`${house.page}#/`)
    await rowWith(page, new RegExp(`^${hub}`))
      .first()
      .waitFor()
    for (const name of OTHERS) {
      expect(await rowWith(page, new RegExp(`^${name}`)).count()).toBe(0)
    }
  })

  test('names the owner of the hub if a user opens an app of another member', async () => {
    const page = await visit(house.page, { hash: `#/app/${other}/com.athom.hue` })
    await page.getByText(`The hub ${other} belongs to the fleet member shard-2`).waitFor()
  })

  test('shows the members, marks its own, and follows the start and the end of another one', async () => {
    // This must be the last test of this house, because it leaves a member that is offline.
    const page = await visit(house.page, { hash: '#/bridge' })
    await fleetOf(page).getByText('by shard number').waitFor()
    await rowOf(page, 'Members', 'shard-1').getByText('this one').waitFor()
    await rowOf(page, 'Members', 'shard-1').getByText('online').waitFor()
    await rowOf(page, 'Members', 'shard-2').getByText('unknown').waitFor()
    await rowOf(page, 'Hubs of other members', other).getByText('unknown').waitFor()
    const env = { HUB2MQTT_FLEET_SHARD: '2/2', HUB2MQTT_HTTP_PORT: String(await freePort()) }
    await using second = new BridgeProcess({ config: house.file, env })
    await rowOf(page, 'Members', 'shard-2').getByText('online').waitFor()
    await rowOf(page, 'Hubs of other members', other).getByText('online').waitFor()
    await second.stop('SIGKILL')
    await rowOf(page, 'Members', 'shard-2').getByText('offline').waitFor()
    await rowOf(page, 'Hubs of other members', other).getByText('unknown').waitFor()
  })

  test('explains why it has no apps if all hubs belong to others, and links to the members', async () => {
    const hubs = Object.fromEntries(OTHERS.map((name) => [name, {}]))
    const { page } = await show({ hubs, config: { fleet: { shard: '1/2' } } })
    await page.getByText('No hub is assigned to this fleet member.').waitFor()
    await page.getByRole('link', { name: 'Members of the fleet, and their hubs' }).click()
    await rowOf(page, 'Hubs of other members', other).waitFor()
  })
})
