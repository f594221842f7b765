/**
 * Makes the program of package and image: one file with everything that the daemon loads, its libraries too, and one for
 * each part that is loaded on demand. To find and read hundreds of files is most of a start.
 */
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'
import { ROOT } from '../base/root.ts'

const root = fileURLToPath(ROOT)

/** What only a checkout has; and what a library does without. */
const ABSENT = ['vite', 'bufferutil', 'utf-8-validate']

/** Writes the program into a folder, which is emptied before. */
export async function bundle(folder: string): Promise<void> {
  await build({
    root,
    configFile: false,
    envDir: false,
    publicDir: false,
    logLevel: 'warn',
    ssr: { noExternal: true, external: ABSENT },
    build: {
      ssr: join(root, 'src/main.ts'),
      outDir: folder,
      emptyOutDir: true,
      target: 'node24',
      // A stack trace names the function, and the file of the source stands above it in the bundle. With a map, Node
      // would read all of it at each start.
      minify: false,
      sourcemap: false,
      license: { fileName: 'licences.md' },
      rolldownOptions: {
        external: isBuiltin,
        output: { entryFileNames: 'main.js', chunkFileNames: '[name].js', keepNames: true },
      },
    },
  })
}
