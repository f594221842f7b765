/** Serves only the files that the page's folder contained when it was listed. */
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { builtPage } from '../ui/build.ts'
import { type Reply, text } from './reply.ts'

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  webmanifest: 'application/manifest+json',
}

const ENCODINGS = { br: '.br', gzip: '.gz' }

/** The `Cache-Control` header of files whose names contain a hash of the content. */
const IMMUTABLE = 'public, max-age=31536000, immutable'

/** The answer if the page cannot be built, because a checkout lacks the development packages. */
const NOT_BUILT = 'The page is not built: run npm ci --include=dev && npm run build:page. The API is at api/.'

export class Page {
  readonly #built: typeof builtPage
  /** Files by path below the folder, with slashes. */
  #files: ReadonlyMap<string, string> = new Map()

  /** @param built returns the folder of the page, if it can be built */
  constructor(built = builtPage) {
    this.#built = built
  }

  /** Returns the file in an accepted encoding; `undefined` for an unknown path. `path` has no leading slash. */
  async answer(path: string, accepted: readonly string[], ancestors: readonly string[]): Promise<Reply | undefined> {
    // A checkout builds the page on the first request, and again after its sources have changed.
    if (path === '' || this.#files.size === 0) this.#files = filesOf(await this.#built())
    const name = path === '' ? 'index.html' : path
    const file = this.#files.get(name)
    if (file === undefined) return path === '' ? text(200, NOT_BUILT) : undefined
    const isUsable = ([known, end]: [string, string]) => accepted.includes(known) && this.#files.has(name + end)
    const [encoding, ending = ''] = Object.entries(ENCODINGS).find(isUsable) ?? []
    const body = await readFile(this.#files.get(name + ending) ?? file)
    return {
      status: 200,
      type: TYPES[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream',
      body,
      headers: {
        'cache-control': name.startsWith('assets/') ? IMMUTABLE : 'no-store',
        vary: 'accept-encoding',
        ...(encoding && { 'content-encoding': encoding }),
        'content-security-policy': policy(ancestors),
      },
    }
  }
}

function filesOf(root: string | undefined): Map<string, string> {
  if (root === undefined) return new Map()
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = files.map(({ parentPath, name }) => join(parentPath, name))
  return new Map(paths.map((path) => [relative(root, path).split(sep).join('/'), path]))
}

/** Forbids inline scripts and content from other origins. */
function policy(frameAncestors: readonly string[]): string {
  const ancestors = frameAncestors.map((one) => (one === 'self' ? "'self'" : one))
  return [
    "default-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "object-src 'none'",
    "form-action 'self'",
    `frame-ancestors ${ancestors.length === 0 ? "'none'" : ancestors.join(' ')}`,
  ].join('; ')
}
