import { IncomingMessage } from 'node:http'
import { Socket, SocketAddress } from 'node:net'
import { describe, expect, it } from 'vitest'
import { LoginLimit } from '../../../src/web/server/access.ts'
import { addressOf, networkOf } from '../../../src/web/server/sender.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { Random } from '../../support/random.ts'
import { accessWith, credentials, openDoor, SENDER } from './door.ts'

const PASSWORD = 'correct horse battery'
const env = { HTTP_HOST: '0.0.0.0', HTTP_PASSWORD: PASSWORD, HTTP_TRUSTED_PROXIES: '127.0.0.1,10.0.0.5' }

describe('forty addresses that keep trying wrong passwords', () => {
  it('lock out no other client once they have failed: neither the owner nor a session', async () => {
    const clock = new FakeClock()
    const access = accessWith(PASSWORD, clock)
    const attempt = (password: string, address: string) => access.login(password, { ...SENDER, address })
    const attack = async () => {
      for (let from = 0; from < 40; from += 1) await attempt('wrong', `10.0.1.${from}`)
    }
    const { cookie = '' } = Object(await attempt(PASSWORD, '192.0.2.1'))
    const browser = new IncomingMessage(new Socket())
    browser.headers.cookie = cookie.split(';')[0]
    for (let seconds = 0; seconds < 60; seconds += 1) {
      await attack()
      expect(access.callerOf(browser, SENDER).access).toBe('full')
      await clock.advance(1_000)
    }
    for (let minutes = 0; minutes < 4; minutes += 1) {
      for (let rounds = 0; rounds < 6; rounds += 1) {
        await clock.advance(10_000)
        await attack()
      }
      expect(await attempt(PASSWORD, `192.0.2.${minutes}`), `after ${minutes} minutes`).toHaveProperty('cookie')
    }
  })

  it('nevertheless slow each other down', async () => {
    const clock = new FakeClock()
    const tries = new LoginLimit(clock)
    let taken = 0
    for (let seconds = 0; seconds < 600; seconds += 1) {
      for (let from = 0; from < 40; from += 1) if (tries.take(`10.0.1.${from}`) === 0) taken += 1
      await clock.advance(1_000)
    }
    // The limit permits thirty attempts immediately, and then one every two seconds.
    expect(taken).toBeLessThanOrEqual(30 + 300)
  })
})

it('of thirty attempts, the last ten are reserved for addresses whose last attempt has not failed', () => {
  const tries = new LoginLimit(new FakeClock())
  for (let n = 0; n < 20; n += 1) expect(tries.take(`10.0.0.${n >> 2}`)).toBe(0)
  expect(tries.take('10.0.0.4')).toBeGreaterThan(0)
  for (let n = 0; n < 10; n += 1) expect(tries.take(`10.0.1.${n}`)).toBe(0)
  expect(tries.take('10.0.2.1')).toBeGreaterThan(0)
})

it('of more than a thousand addresses that have failed, the first is forgotten', async () => {
  const clock = new FakeClock()
  const tries = new LoginLimit(clock)
  const fail = (first: number, count: number) => {
    for (let n = first; n < first + count; n += 1) expect(tries.take(`10.1.${n >> 8}.${n & 255}`)).toBe(0)
  }
  for (let n = 0; n < 1_000; n += 1) {
    fail(n, 1)
    await clock.advance(2_000)
  }
  // Use twenty of the thirty attempts: the last ten are reserved for addresses without failures.
  fail(1_000, 20)
  expect(tries.take('10.1.3.231')).toBeGreaterThan(0)
  expect(tries.take('10.1.0.0')).toBe(0)
})

it.each([
  ['as IPv6', (n: number) => ['::ffff:1.2.3.4', '::FFFF:0102:0304', '[::ffff:1.2.3.4]:80'][n % 3] ?? '', '1.2.3.4'],
  ['in one network of IPv6', (n: number) => `2001:db8:1:2:${n}::1`, '2001:DB8:1:2::'],
  ['after other addresses that it writes itself', (n: number) => `9.9.9.${n}, 1.2.3.4`, '1.2.3.4'],
  ['at the start of a chain of trusted proxies', () => '192.0.2.1, 10.0.0.5', '192.0.2.1'],
  ['as no address at all', (n: number) => `unknown-${n}`, 'nonsense'],
])('five wrong passwords lock an address out for 30 seconds, in any spelling: %s', async (_, spelling, plain) => {
  const clock = new FakeClock()
  const { ask } = await openDoor({ env, clock })
  const attempt = (password: string, from: string) =>
    ask('/api/login', credentials(password, { 'x-forwarded-for': from }))
  for (let n = 0; n < 4; n += 1) expect((await attempt('wrong', spelling(n))).status).toBe(401)
  // The right password gives an address its five attempts back.
  expect((await attempt(PASSWORD, plain)).status).toBe(204)
  for (let n = 0; n < 5; n += 1) expect((await attempt('wrong', spelling(n))).status).toBe(401)
  const refused = await attempt(PASSWORD, plain)
  expect(refused).toMatchObject({ status: 429, code: 'tries', headers: { 'retry-after': '30' } })
  expect((await attempt(PASSWORD, '2001:db8:1:3::1')).status).toBe(204)
  await clock.advance(30_000)
  expect((await attempt(PASSWORD, plain)).status).toBe(204)
})

describe('an address', () => {
  const random = new Random(24)
  const groups = () => Array.from({ length: 8 }, () => (random.chance(0.5) ? 0 : random.below(0x1_0000)))

  /** Returns one of the many spellings of an IPv6 address. */
  function spellingOf(address: readonly number[]): string {
    const hex = address.map((group) => {
      const plain = group.toString(16).padStart(random.int(1, 4), '0')
      return random.chance(0.5) ? plain.toUpperCase() : plain
    })
    const start = random.below(8)
    let end = start
    while (address[end] === 0 && random.chance(0.9)) end += 1
    // `::` stands for at least one group of zeros.
    const text = end > start ? `${hex.slice(0, start).join(':')}::${hex.slice(end).join(':')}` : hex.join(':')
    return random.chance(0.3) ? `[${text}]:${random.below(65_536)}` : random.chance(0.2) ? `[${text}]` : text
  }

  it('has one form for all its spellings, and one network for all its hosts', () => {
    for (let rounds = 0; rounds < 1_000; rounds += 1) {
      const address = groups()
      // Skip IPv4 addresses, whose spellings another test covers.
      if (address.slice(0, 5).every((group) => group === 0)) continue
      const wanted = new SocketAddress({
        family: 'ipv6',
        address: address.map((group) => group.toString(16)).join(':'),
      })
      const spelling = spellingOf(address)
      expect(addressOf(spelling), spelling).toBe(wanted.address)
      const network = address.slice(0, 4).map((group) => group.toString(16))
      expect(networkOf(wanted.address), wanted.address).toBe(network.join(':'))
    }
  })

  it('of IPv4 is the same on a listener on IPv6, and is its own network', () => {
    for (let rounds = 0; rounds < 1_000; rounds += 1) {
      const bytes = Array.from({ length: 4 }, () => random.below(256))
      const plain = bytes.join('.')
      const [high = '', low = ''] = [0, 2].map((at) => (((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)).toString(16))
      const spellings = [
        plain,
        `${plain}:8080`,
        `::ffff:${plain}`,
        `::FFFF:${high}:${low}`,
        `[0:0:0:0:0:ffff:${high}:${low}]:1`,
      ]
      for (const spelling of spellings) expect(addressOf(spelling), spelling).toBe(plain)
      expect(networkOf(plain)).toBe(plain)
    }
  })

  it.each([
    ...['', '1.2.3.4, 5.6.7.8'],
    ...'unknown _hidden 1.2.3 1.2.3.4.5 999.1.1.1 01.2.3.4 0x7f.1 127.1 1.2.3.4:x :80 [1 [] ::1] 1::2::3 ::ffff:1.2.3'.split(
      ' ',
    ),
  ])('is invalid: %j', (text) => expect(addressOf(text)).toBeUndefined())
})
