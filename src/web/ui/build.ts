/** A checkout builds the page on the first request; the package and the image contain the built page. */
import { existsSync, globSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { systemCode } from '../../base/failures.ts'
import { ROOT } from '../../base/root.ts'
import { DOCS_URL } from '../../base/version.ts'

const FOLDER = fileURLToPath(ROOT)
const SOURCE = `${FOLDER}src/web/ui/app`
const OUTPUT = `${FOLDER}src/web/ui/dist`
/** The files that the built page depends on. The lock file changes when the version of a package changes. */
export const MADE_OF = [
  'src/web/{ui/app,server/api}/**',
  'src/{contract,guardian,hub,mqtt,observability,base}/**/*.ts',
  'package-lock.json',
  'package.json',
]

let building: Promise<string | undefined> | undefined

/** Builds the page if it is missing or outdated. Resolves to its folder, or to `undefined` if it cannot be built. */
export function builtPage(): Promise<string | undefined> {
  building ??= present().finally(() => {
    building = undefined
  })
  return building
}

async function present(): Promise<string | undefined> {
  const isBuilt = existsSync(`${OUTPUT}/index.html`)
  // Without sources, as in the image and the package, use the page as it is. Also use it if it is up to date.
  if (!existsSync(`${SOURCE}/index.html`) || (isBuilt && isCurrent())) return isBuilt ? OUTPUT : undefined
  try {
    await buildPage()
    return OUTPUT
  } catch (error) {
    // If the bundler is not installed, use the existing page, if any.
    if (systemCode(error) !== 'ERR_MODULE_NOT_FOUND') throw error
    return isBuilt ? OUTPUT : undefined
  }
}

function isCurrent(): boolean {
  const builtAt = statSync(`${OUTPUT}/index.html`).mtimeMs
  const sources = globSync(MADE_OF, { cwd: FOLDER, exclude: ['src/web/ui/dist/**'] })
  return sources.every((path) => statSync(`${FOLDER}${path}`).mtimeMs <= builtAt)
}

/** Builds the page. @throws Error if the sources contain an error, or if the bundler is not installed */
export async function buildPage(): Promise<void> {
  const { build } = await import('vite')
  await build({
    root: SOURCE,
    configFile: false,
    logLevel: 'silent',
    // A relative path, because a proxy may serve the page below a prefix.
    base: './',
    envFile: false,
    define: { DOCS_URL: JSON.stringify(DOCS_URL) },
    // Ignore the environment, because a development build would reveal the location of the sources.
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact', development: false } },
    build: {
      outDir: OUTPUT,
      emptyOutDir: true,
      // The content security policy of the page does not allow `data:` addresses.
      assetsInlineLimit: 0,
      modulePreload: false,
      reportCompressedSize: false,
      rolldownOptions: {
        // Do not warn about a slow build, because the machine may be busy.
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

/** Lists the files that a visit loads, with compressed sizes in bytes. Only installing the page loads PNG icons. */
export function weighPage(): { readonly path: string; readonly bytes: number }[] {
  return globSync('**/*', { cwd: OUTPUT })
    .filter((path) => !/\.(br|gz|png)$/.test(path) && statSync(`${OUTPUT}/${path}`).isFile())
    .map((path) => ({ path, bytes: brotliCompressSync(readFileSync(`${OUTPUT}/${path}`)).length }))
}
