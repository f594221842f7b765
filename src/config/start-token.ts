/** While there is no password, the start-up token proves that a request is from the user who started hub2mqtt. */
import { randomBytes } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { systemCode } from '../base/failures.ts'
import { isOurs, writeWhole } from './own-file.ts'

const FORM = /^[\w-]{43}$/
const MAX_BYTES = 256
const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = constants

/** Returns `http.token_file`, or a path beside the configuration file; `null` if neither is configured. */
export function tokenFileOf({ token_file }: { readonly token_file: string | null }, configFile: string | null) {
  return token_file ?? (configFile === null ? null : `${configFile}.token`)
}

/** Returns the stored token; `undefined` if another user created or can read the file, or it is no regular file. */
export function readToken(file: string): string | undefined {
  const found = readTokenFile(file)
  return found?.isPrivate ? found.token : undefined
}

/** Returns `null` if the file is missing or empty; `undefined` if it has other content, which is not overwritten. */
function readTokenFile(file: string): { readonly token: string; readonly isPrivate: boolean } | null | undefined {
  let descriptor: number | undefined
  try {
    descriptor = openSync(file, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
    const found = fstatSync(descriptor)
    if (!found.isFile() || found.size > MAX_BYTES) return undefined
    const token = readFileSync(descriptor, 'utf8').trim()
    if (token === '') return null
    return FORM.test(token) ? { token, isPrivate: isPrivate(found) } : undefined
  } catch (error) {
    return systemCode(error) === 'ENOENT' ? null : undefined
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/** Returns whether only the owner can read the file, and this user is its owner or root, who may start any daemon. */
function isPrivate({ mode, uid }: { readonly mode: number; readonly uid: number }): boolean {
  const self = process.getuid?.()
  return self === undefined || ((mode & 0o077) === 0 && (self === 0 || uid === self))
}

/** Returns the stored token; otherwise `token`, which is stored if possible, unless `keep` is `false`. */
export async function startToken(
  file: string | null,
  log: { warn(fields: object, message: string): void },
  { keep = true, token = randomBytes(32).toString('base64url') } = {},
) {
  if (file === null) return token
  const found = readTokenFile(file)
  if (found?.isPrivate) return found.token
  if (!keep) return token
  try {
    if (found === undefined) log.warn({ file }, 'the start-up token is not stored: its file has other content')
    else if (await isOurs(file)) await writeWhole(file, `${token}\n`)
    else if (found !== null) log.warn({ file }, 'the start-up token is not stored: this user may not replace its file')
  } catch (err) {
    log.warn({ err, file }, 'the start-up token could not be stored: the next start creates a new one')
  }
  return token
}

/** Returns the address with the token, so that a browser that opens it is logged in. */
export const addressWith = (address: string, token: string): string => `${address}?token=${token}`
