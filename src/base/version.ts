/** The version of this program and its addresses, from `package.json`. */
import { readFileSync } from 'node:fs'
import * as v from 'valibot'
import { ROOT } from './root.ts'

const manifest: unknown = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8'))

const { version, bugs } = v.parse(v.object({ version: v.string(), bugs: v.object({ url: v.string() }) }), manifest)

export const VERSION = version
/** Where to ask for help. */
export const SUPPORT_URL = bugs.url
