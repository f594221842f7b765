import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { canBrowse, expectAccessible, overflow, see, visit } from './support/browser.ts'
import { asked, type House, type HouseOptions, show, startHouse } from './support/house.ts'

const HUE = 'com.athom.hue'
const ODD = 'a/b?#%2F "<img src=x onerror=hacked=1>" \u202eevil {{ x }}'
const settings = {
  transition: 400,
  dimmed: false,
  name: 'Lamp',
  bridges: ['192.0.2.14'],
  access_token: 'canary-token',
  address: 'http://key-of-the-house@192.0.2.1/',
  [ODD]: 'odd',
}

const APP = { id: HUE, name: 'Lumen Lights', version: '7.0.12' }

async function start(options: HouseOptions = {}): Promise<{ house: House; page: Page }> {
  const hubs = { home: { apps: [{ ...APP, settings }] } }
  const { house, page } = await show({ hubs, ...options }, { hash: `#/app/home/${HUE}` })
  await page.getByRole('button', { name: 'Read settings' }).click()
  await page.getByText('transition', { exact: true }).waitFor()
  return { house, page }
}

const lineOf = (page: Page, name: string) =>
  page.locator('li.setting').filter({ has: page.getByText(name, { exact: true }) })
const pencil = (page: Page, name: string) =>
  lineOf(page, name).getByRole('button', { name: `Change the value of ${name}` })
const edit = (page: Page, name: string) => pencil(page, name).click()
const focus = (page: Page, name: string) => page.locator(':focus').and(pencil(page, name)).waitFor()
const field = (page: Page, name: string) => page.getByLabel(`New value of ${name}`, { exact: true })
const save = (page: Page) => page.getByRole('button', { name: 'Save', exact: true }).click()
async function set(page: Page, name: string, typed: string): Promise<void> {
  await edit(page, name)
  await field(page, name).fill(typed)
  await save(page)
}
const held = (house: House) => house.hub().settings(HUE)
const done = (page: Page, name: string) => page.getByRole('status').getByText(`${name} is changed.`).waitFor()

async function elsewhere(house: House, command: string, payload: object): Promise<void> {
  const headers = { ...(await house.daemon.owner()), 'content-type': 'application/json' }
  const body = JSON.stringify(payload)
  const answer = await fetch(`${house.url}api/commands/home/app/${HUE}/${command}`, { method: 'POST', headers, body })
  expect(answer.status).toBe(200)
}
const setElsewhere = (house: House, name: string, value: unknown) => elsewhere(house, 'set-setting', { name, value })
const unsetElsewhere = (house: House, name: string) => elsewhere(house, 'unset-setting', { name })

describe.runIf(canBrowse)('a setting of an app', () => {
  test('is changed in place according to its type, and restored', async () => {
    const { house, page } = await start()
    await edit(page, 'transition')
    await field(page, 'transition').fill(' 21.5 ')
    await field(page, 'transition').press('Enter')
    await done(page, 'transition')
    await focus(page, 'transition')
    expect(held(house)['transition']).toBe(21.5)
    await edit(page, 'transition')
    await field(page, 'transition').press('Escape')
    await focus(page, 'transition')
    await lineOf(page, 'transition').getByText('Before: 400').waitFor()
    await edit(page, 'dimmed')
    await field(page, 'dimmed').selectOption('true')
    await save(page)
    await done(page, 'dimmed')
    expect(held(house)['dimmed']).toBe(true)
    await set(page, 'name', '4\n{"a":1}')
    await done(page, 'name')
    expect(held(house)['name']).toBe('4\n{"a":1}')
    await edit(page, 'bridges')
    await expectAccessible(page)
    await field(page, 'bridges').fill('{"main":["192.0.2.15"]}')
    await save(page)
    await done(page, 'bridges')
    expect(held(house)['bridges']).toEqual({ main: ['192.0.2.15'] })
    for (const name of ['transition', 'dimmed', 'name', 'bridges'] as const) {
      await lineOf(page, name).getByRole('button', { name: 'Put back' }).click()
      await until(`the former ${name}`, () => JSON.stringify(held(house)[name]) === JSON.stringify(settings[name]))
    }
    await edit(page, 'transition')
    await page.getByLabel('Type').selectOption('text')
    await save(page)
    await until('another type', () => held(house)['transition'] === '400')
  })

  test('with a strange name is changed like any other, and none of it runs as code', async () => {
    const { house, page } = await start()
    await set(page, ODD, 'even')
    await until('the new value', () => held(house)[ODD] === 'even')
    expect(await page.evaluate<unknown>('window.hacked')).toBeUndefined()
    await page.setViewportSize({ width: 360, height: 740 })
    // Wait until the charts have adapted to the size of their containers.
    await until('the small screen', async () => (await overflow(page)) <= 0)
  })

  test('that may be a secret, or that the bridge masks, is neither shown nor sent unless it is typed again', async () => {
    const { house, page } = await start()
    const bodies: string[] = []
    page.on('request', (request) => bodies.push(request.postData() ?? ''))
    for (const name of ['access_token', 'address']) {
      await edit(page, name)
      await page.getByText('The current value is hidden: enter a new one.').waitFor()
      expect(await field(page, name).inputValue()).toBe('')
      await field(page, name).fill('a new one')
      await save(page)
      await done(page, name)
      expect(held(house)[name]).toBe('a new one')
      expect(await lineOf(page, name).getByRole('button', { name: 'Put back' }).count()).toBe(0)
    }
    expect(await page.content()).not.toMatch(/canary-token|key-of-the-house/)
    expect(bodies.join('\n')).not.toMatch(/canary-token|\*\*\*/)
    // When the user makes the value visible and edits it, the field must contain the current value.
    await lineOf(page, 'access_token')
      .getByRole('button', { name: /^Show the value/ })
      .click()
    await edit(page, 'access_token')
    expect(await field(page, 'access_token').inputValue()).toBe('a new one')
  })

  test('that is not shown is saved only after something was entered, which can be deleted again for an empty text', async () => {
    const { house, page } = await start()
    for (const name of ['access_token', 'address']) {
      await edit(page, name)
      const refused = page.getByRole('button', { name: /^Save \(Enter a new value first\./ })
      await refused.click({ force: true })
      await refused.waitFor()
      await field(page, name).pressSequentially('x')
      await refused.waitFor({ state: 'detached' })
      await field(page, name).press('Backspace')
      await save(page)
      await done(page, name)
      expect(held(house)[name]).toBe('')
      expect(asked(house, `/setting/${name}`)).toHaveLength(1)
    }
  })

  test('that another client has changed is overwritten only on request', async () => {
    const { house, page } = await start()
    await edit(page, 'transition')
    await field(page, 'transition').fill('500')
    await setElsewhere(house, 'transition', 450)
    await save(page)
    const dialog = page.getByRole('dialog')
    await dialog.getByText('The value is now: 450').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('Nothing was changed.', { exact: true }).waitFor()
    expect(held(house)['transition']).toBe(450)
    expect(await field(page, 'transition').inputValue()).toBe('500')
    await save(page)
    await dialog.getByRole('button', { name: 'Overwrite' }).click()
    await until('the new value', () => held(house)['transition'] === 500)
    await edit(page, 'access_token')
    await field(page, 'access_token').fill('mine')
    await setElsewhere(house, 'access_token', 'theirs')
    await save(page)
    await dialog.getByText('Another program has changed the value.').waitFor()
    expect(await page.content()).not.toContain('theirs')
  })

  test('that another client has removed is restored or set again only on request, and the typed text is kept', async () => {
    const { house, page } = await start({
      hubs: { home: { apps: [{ ...APP, settings: { ...settings, valueOf: 1 } }] } },
    })
    const dialog = page.getByRole('dialog')
    await set(page, 'name', 'Sun')
    await done(page, 'name')
    await unsetElsewhere(house, 'name')
    await lineOf(page, 'name').getByRole('button', { name: 'Put back' }).click()
    await dialog.getByText('The app no longer has this setting.').waitFor()
    await dialog.getByRole('button', { name: 'Overwrite' }).click()
    await until('the former value', () => held(house)['name'] === 'Lamp')
    for (const [name, typed, value] of [
      ['transition', '500', 500],
      ['valueOf', '2', 2],
      ['access_token', 'mine', 'mine'],
    ] as const) {
      await edit(page, name)
      await field(page, name).fill(typed)
      await unsetElsewhere(house, name)
      await save(page)
      await dialog.getByText('The app no longer has this setting.').waitFor()
      await dialog.getByRole('button', { name: 'Cancel' }).click()
      await lineOf(page, name).getByText('Nothing was changed.', { exact: true }).waitFor()
      await lineOf(page, name).locator('.value').getByText('The app no longer has this setting.').waitFor()
      expect(Object.keys(held(house))).not.toContain(name)
      await setElsewhere(house, `after ${name}`, true)
      await page.getByRole('button', { name: 'Read again' }).click()
      await lineOf(page, `after ${name}`).waitFor()
      expect(await field(page, name).inputValue()).toBe(typed)
      await save(page)
      await dialog.getByRole('button', { name: 'Overwrite' }).click()
      await done(page, name)
      expect(held(house)[name]).toBe(value)
      expect(await field(page, name).count()).toBe(0)
    }
  })

  test('is not changed to an invalid value, nor to one longer than a command, with the reason', async () => {
    const { house, page } = await start()
    await set(page, 'transition', '4OO')
    await page.locator('.edit').getByRole('alert').getByText('Enter a number, such as 21.5.').waitFor()
    await page.keyboard.press('Escape')
    await set(page, 'name', 'é'.repeat(32 * 1024))
    await page.getByText('The value is too long: a setting can have at most 64 KiB.').waitFor()
    const most = 'x'.repeat(64 * 1024 - JSON.stringify({ name: 'name', value: '' }).length)
    await field(page, 'name').fill(most)
    expect(held(house)).toEqual(settings)
    await save(page)
    await until('the longest text', () => held(house)['name'] === most, 20_000)
  })

  test('that the hub refuses stays, with the message of the hub and the typed text', async () => {
    const { house, page } = await start()
    const fault = { operation: 'setAppSetting', status: 400, error: 'bad', description: 'The lamp is too hot' } as const
    house.hub().behave('answer-status', fault)
    await set(page, 'name', 'Sun')
    await see(lineOf(page, 'name'), /The lamp is too hot/)
    expect(await field(page, 'name').inputValue()).toBe('Sun')
    expect(held(house)['name']).toBe('Lamp')
    house.hub().behave('answer-status', { operation: 'getAppSettings', status: 500 })
    await save(page)
    await see(lineOf(page, 'name'), /^Nothing was changed: /)
  })

  test('is unknown after a command without an answer, until it is read again', async () => {
    const { house, page } = await start()
    house.hub().behave('reset-before-executing', { operation: 'setAppSetting' })
    await set(page, 'name', 'Sun')
    const line = lineOf(page, 'name')
    await line.locator('.bad-text:not(:empty)').waitFor()
    await line.getByText('The current value is not known.').waitFor()
    await line.locator('.value').getByText('unknown').waitFor()
    await line.getByRole('button', { name: 'Read again' }).click()
    await line.locator('.value').getByText('Lamp').waitFor()
    await line.locator('.bad-text:not(:empty)').waitFor({ state: 'detached' })
    expect(await field(page, 'name').inputValue()).toBe('Sun')
  })

  test('is unknown, not its former value, if it cannot be read after a change, until it is read again', async () => {
    const { house, page } = await start()
    await edit(page, 'name')
    await field(page, 'name').fill('Sun')
    // The command succeeds and then makes reading fail.
    await page.route('**/set-setting', async (route) => {
      const response = await route.fetch()
      house.hub().behave('answer-status', { operation: 'getAppSettings', status: 500 })
      await route.fulfill({ response })
    })
    await save(page)
    await done(page, 'name')
    const line = lineOf(page, 'name')
    await line.locator('.value').getByText('unknown').waitFor()
    house.hub().behaveWell()
    await line.getByRole('button', { name: 'Read again' }).click()
    await line.locator('.value').getByText('Sun').waitFor()
  })

  test('keeps the typed text while the daemon is offline', async () => {
    const { house, page } = await start()
    await edit(page, 'name')
    await field(page, 'name').fill('Sun')
    await house.daemon.stop()
    await page.getByRole('button', { name: /^Save \(There is no connection/ }).waitFor()
    expect(await field(page, 'name').inputValue()).toBe('Sun')
  })
})

describe.runIf(canBrowse)('a setting is not offered for a change, with the reason,', () => {
  test('if the configuration does not allow it', async () => {
    const { house, page } = await start({ config: { commands: { deny: ['set-setting'] } } })
    const button = lineOf(page, 'name').getByRole('button', { name: /^Change the value.*commands\.deny/ })
    await button.click({ force: true })
    expect(await page.locator('.edit').count()).toBe(0)
    expect(asked(house, '/setting/name')).toHaveLength(0)
  })

  test('if the key lacks the permission, without which no setting can be read either', async () => {
    const { page } = await show({ scopes: ['hub.app.readonly'] }, { hash: `#/app/home/${HUE}` })
    await page.getByRole('button', { name: /^Read settings \(The API key lacks hub\.app\.control/ }).waitFor()
  })

  test('to readers', async () => {
    const house = await startHouse()
    const page = await visit(house.url, { hash: `#/app/home/${HUE}` })
    await page.getByRole('button', { name: /^Read settings \(You have read-only access/ }).waitFor()
  })
})
