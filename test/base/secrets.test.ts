import { describe, expect, it } from 'vitest'
import { hashPassword, isGoodHash, isPassword, sameSecret } from '../../src/base/secrets.ts'

describe('a password', () => {
  it('is verified by its hash, which differs each time and reveals nothing', async () => {
    const hash = await hashPassword('correct horse')
    expect(hash).toMatch(/^scrypt\$32768\$8\$3\$[\w-]{22}\$[\w-]{43}$/)
    expect(isGoodHash(hash)).toBe(true)
    expect(await hashPassword('correct horse')).not.toBe(hash)
    const given = ['correct horse', hash].map((one) => isPassword(one, hash))
    expect(await Promise.all(given)).toEqual([true, false])
  })

  it('is verified as plain text', async () => {
    expect(await isPassword('correct horse', 'correct horse')).toBe(true)
    expect(await isPassword('Correct horse', 'correct horse')).toBe(false)
    expect(await isPassword('', 'correct horse')).toBe(false)
  })

  it('is hashed without blocking the event loop', async () => {
    let turns = 0
    const turning = setInterval(() => {
      turns += 1
    }, 1)
    await hashPassword('x')
    clearInterval(turning)
    expect(turns).toBeGreaterThan(3)
  })

  const salt = 'A'.repeat(22)
  const key = 'B'.repeat(43)
  it.each([
    'scrypt$',
    `scrypt$1000$8$1$${salt}$${key}`,
    `scrypt$1$8$1$${salt}$${key}`,
    `scrypt$1048576$8$1$${salt}$${key}`,
    `scrypt$1024$8$99$${salt}$${key}`,
    `scrypt$1024$0$1$${salt}$${key}`,
    `scrypt$1024$8$1$${salt}$short`,
    `scrypt$1024$8$1$${salt}$${key}$more`,
  ])('is not verified by a hash that is too expensive or invalid: %s', async (hash) => {
    expect(isGoodHash(hash)).toBe(false)
    expect(await isPassword(hash, hash)).toBe(false)
  })
})

it('secrets are equal only as a whole', () => {
  expect(sameSecret('abc', 'abc')).toBe(true)
  for (const given of ['', 'ab', 'abcd', 'ABC']) expect(sameSecret(given, 'abc')).toBe(false)
})
