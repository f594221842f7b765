/** Bundles the program, because reading hundreds of source files would take most of the startup time. */
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'vite'
import { ROOT } from '../../base/root.ts'

const root = fileURLToPath(ROOT)

/** Packages that are not bundled: a development package, and optional dependencies of libraries. */
const ABSENT = ['vite', 'bufferutil', 'utf-8-validate']

/**
 * Modules that are loaded together share a file. Each file contains everything that its modules import, except the
 * content of files with a higher priority. Every command needs the first file. A health check, which runs every few
 * seconds, also needs the second file. The main module has a file of its own: it awaits the end of the program, so no
 * other file may depend on it.
 */
const FILES = [
  { name: 'start', test: /src\/cli\/(?:command|memory|perform)\.ts$/, priority: 3 },
  { name: 'config', test: /src\/(?:config\/load|cli\/check-config|cli\/running)\.ts$/, priority: 2 },
  { name: 'daemon', test: /src\/(?:app|cli\/run)\.ts$/, priority: 1 },
]

/**
 * Replaces imports of built-in modules with `process.getBuiltinModule`. For an import, Node.js reads all exports, and
 * some exports are getters that load modules: for `node:http`, Node.js loads undici, which takes longer than loading
 * this program. Source: `syncExports` in `lib/internal/bootstrap/realm.js` of Node.js.
 */
const builtinsAsObjects: Plugin = {
  name: 'builtins-as-objects',
  renderChunk: (code) => ({
    code: code.replaceAll(/^import (.+) from "([^".]+)";$/gm, (_line, names: string, module: string) => {
      // An import may have both a default or namespace binding and named bindings.
      const [whole = '', some] = names.split(', {')
      const rest = some === undefined ? '' : ` const {${some.replaceAll(' as ', ': ')} = ${whole};`
      return `const ${whole.replaceAll(' as ', ': ')} = process.getBuiltinModule("${module}");${rest}`
    }),
  }),
}

/** Removes a check of engine.io-client for `globalThis.WebSocket`, which would make Node.js load its own WebSocket. */
const noWebSocketOfNode: Plugin = {
  name: 'no-websocket-of-node',
  transform: {
    filter: { id: /engine\.io-client\/build\/[a-z-]+\/transports\/websocket\.js$/ },
    handler: (code) => code.replace('globalThis.WebSocket || globalThis.MozWebSocket', 'undefined'),
  },
}

/** Escapes all characters outside ASCII, because even one would double the memory that V8 needs for the text. */
const ascii: Plugin = {
  name: 'ascii',
  renderChunk: (code) => ({
    code: code.replaceAll(/[^\0-\x7f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`),
  }),
}

/** Empties the folder, and writes the bundle to it. */
export async function bundle(folder: string): Promise<void> {
  await build({
    root,
    configFile: false,
    envDir: false,
    publicDir: false,
    logLevel: 'warn',
    ssr: { noExternal: true, external: ABSENT },
    plugins: [noWebSocketOfNode, builtinsAsObjects, ascii],
    resolve: {
      alias: [
        { find: /^debug$/, replacement: join(root, 'src/tooling/build/no-debug.cjs') },
        { find: /^undici$/, replacement: join(root, 'src/tooling/build/undici-pool.cjs') },
      ],
    },
    build: {
      ssr: join(root, 'src/main.ts'),
      outDir: folder,
      emptyOutDir: true,
      target: 'node24',
      // Node.js would read a source map at each start. Stack traces name the functions even without a source map, and
      // comments in the bundle name the source files.
      minify: false,
      sourcemap: false,
      license: { fileName: 'licences.md' },
      rolldownOptions: {
        external: isBuiltin,
        // Do not warn about modules that some parts load on demand although the daemon always loads them.
        checks: { ineffectiveDynamicImport: false, bundlerTimings: false },
        output: {
          entryFileNames: 'main.js',
          chunkFileNames: '[name].js',
          keepNames: true,
          charset: 'ascii',
          // Keep the notices of licences.
          comments: { jsdoc: false, annotation: false },
          codeSplitting: { groups: FILES },
        },
      },
    },
  })
}

if (import.meta.main) await bundle(join(root, 'dist'))
