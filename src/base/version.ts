import { readFileSync } from 'node:fs'
import * as v from 'valibot'
import { ROOT } from './root.ts'

const manifest: unknown = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8'))

const url = v.pipe(v.string(), v.url())
const { version, bugs, homepage } = v.parse(
  v.object({ version: v.string(), bugs: v.object({ url }), homepage: url }),
  manifest,
)

export const VERSION = version
/** The page where users can ask for help. */
export const SUPPORT_URL = bugs.url
/** The address of the documentation, with a trailing slash. */
export const DOCS_URL = `${homepage.split('#')[0]}/blob/main/docs/`
