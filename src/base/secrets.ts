import { createHash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

/** Compares in constant time, so the timing reveals neither the length nor the position of the first difference. */
export function sameSecret(given: string | Buffer, expected: string): boolean {
  const digest = (text: string | Buffer) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}

const derive = promisify<string, Buffer, number, { N: number; r: number; p: number; maxmem: number }, Buffer>(scrypt)

/** Computing a hash takes 32 MiB of memory, and about a third of a second on a small computer. */
const COST = { N: 32_768, r: 8, p: 3 }
const KEY_BYTES = 32
/** Maximum memory for checking a password against a configured hash, in bytes. */
const MAX_MEMORY = 64 * 1024 * 1024
const MAX_PARALLEL = 16

/** Returns `scrypt$<N>$<r>$<p>$<salt>$<key>`, with salt and key in base64url. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16)
  const { N, r, p } = COST
  const key = await derive(password, salt, KEY_BYTES, { ...COST, maxmem: 2 * MAX_MEMORY })
  return ['scrypt', N, r, p, salt.toString('base64url'), key.toString('base64url')].join('$')
}

/** Also recognises a hash that a shell or compose has damaged by treating each `$` as the start of a variable. */
export const isHash = (text: string): boolean => text.startsWith('scrypt')

export const isGoodHash = (text: string): boolean => parseHash(text) !== undefined

function parseHash(text: string) {
  const [, N, r, p, salt = '', key = ''] =
    /^scrypt\$(\d{1,7})\$(\d{1,3})\$(\d{1,3})\$([\w-]{8,128})\$([\w-]{22,128})$/.exec(text) ?? []
  const cost = { N: Number(N), r: Number(r), p: Number(p) }
  const isPower = cost.N > 1 && Number.isInteger(Math.log2(cost.N))
  if (!isPower || cost.r < 1 || cost.p < 1 || cost.p > MAX_PARALLEL || 128 * cost.N * cost.r > MAX_MEMORY)
    return undefined
  return { cost, salt: Buffer.from(salt, 'base64url'), key: Buffer.from(key, 'base64url') }
}

/** Accepts a password in plain text or a hash as `expected`. Computing the hash does not block the event loop. */
export async function isPassword(given: string, expected: string): Promise<boolean> {
  if (!isHash(expected)) return sameSecret(given, expected)
  const hash = parseHash(expected)
  if (hash === undefined) return false
  const key = await derive(given, hash.salt, hash.key.length, { ...hash.cost, maxmem: 2 * MAX_MEMORY })
  return timingSafeEqual(key, hash.key)
}
