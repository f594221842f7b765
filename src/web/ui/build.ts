/** Builds the page from its sources. A checkout does so at the first request; package and image contain it. */
import { existsSync, globSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { systemCode } from '../../base/failures.ts'
import { ROOT } from '../../base/root.ts'
import { DOCS_URL } from '../../base/version.ts'

const FOLDER = fileURLToPath(ROOT)
const SOURCE = `${FOLDER}src/web/ui/app`
const OUTPUT = `${FOLDER}src/web/ui/dist`
/** The sources of the page, besides the packages that the lock file names. */
const MADE_OF = [
  'src/web/{ui/app,server/api}/**',
  'src/{contract,guardian,hub,mqtt,base}/**/*.ts',
  'package-lock.json',
  'package.json',
]

let building: Promise<string | undefined> | undefined

/** The folder of the page, rebuilt if missing or older than its sources; `undefined`: there is neither of them. */
export function builtPage(): Promise<string | undefined> {
  building ??= present().finally(() => {
    building = undefined
  })
  return building
}

async function present(): Promise<string | undefined> {
  const isBuilt = existsSync(`${OUTPUT}/index.html`)
  // The image contains no sources, and a package has no tools to build them.
  if (!existsSync(`${SOURCE}/index.html`) || (isBuilt && isCurrent())) return isBuilt ? OUTPUT : undefined
  try {
    await buildPage()
    return OUTPUT
  } catch (error) {
    // There is no bundler.
    if (systemCode(error) !== 'ERR_MODULE_NOT_FOUND') throw error
    return isBuilt ? OUTPUT : undefined
  }
}

function isCurrent(): boolean {
  const builtAt = statSync(`${OUTPUT}/index.html`).mtimeMs
  const sources = globSync(MADE_OF, { cwd: FOLDER, exclude: ['src/web/ui/dist/**'] })
  return sources.every((path) => statSync(`${FOLDER}${path}`).mtimeMs <= builtAt)
}

/** @throws Error for a mistake in the sources, or without the bundler */
export async function buildPage(): Promise<void> {
  const { build } = await import('vite')
  await build({
    root: SOURCE,
    configFile: false,
    logLevel: 'silent',
    // Relative, because a proxy may serve the page below a prefix.
    base: './',
    envFile: false,
    define: { DOCS_URL: JSON.stringify(DOCS_URL) },
    // Ignore the environment: a development build reveals the location of its sources.
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact', development: false } },
    build: {
      outDir: OUTPUT,
      emptyOutDir: true,
      // The page's policy allows no data: addresses.
      assetsInlineLimit: 0,
      modulePreload: false,
      reportCompressedSize: false,
      rolldownOptions: {
        // A busy machine is no fault of the page.
        checks: { bundlerTimings: false },
        onwarn(warning) {
          throw new Error(warning.message)
        },
      },
    },
  })
  for (const path of globSync('assets/*.{js,css}', { cwd: OUTPUT })) {
    const bytes = readFileSync(`${OUTPUT}/${path}`)
    writeFileSync(`${OUTPUT}/${path}.br`, brotliCompressSync(bytes))
    writeFileSync(`${OUTPUT}/${path}.gz`, gzipSync(bytes, { level: 9 }))
  }
}

/** All files that a visit loads, with their compressed sizes in bytes. Its icons as PNG are for an installed page. */
export function weighPage(): { readonly path: string; readonly bytes: number }[] {
  return globSync('**/*', { cwd: OUTPUT })
    .filter((path) => !/\.(br|gz|png)$/.test(path) && statSync(`${OUTPUT}/${path}`).isFile())
    .map((path) => ({ path, bytes: brotliCompressSync(readFileSync(`${OUTPUT}/${path}`)).length }))
}
