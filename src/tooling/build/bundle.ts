/**
 * `npm run build` bundles the program for the package and the image: a few files with the daemon and its libraries,
 * and one for each part that is loaded on demand. Reading hundreds of files would take most of the startup time.
 */
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'vite'
import { ROOT } from '../../base/root.ts'

const root = fileURLToPath(ROOT)
const MAIN = join(root, 'src/main.ts')

/** Packages that exist only in a checkout, and optional packages of a library. */
const ABSENT = ['vite', 'bufferutil', 'utf-8-validate']

/**
 * Modules that are loaded together share a file: each file has everything that its modules import, except the content
 * of earlier files. Every command needs the first file; a health check, which runs every few seconds, also needs the
 * second.
 */
const FILES = [
  { name: 'start', of: ['src/main.ts'] },
  { name: 'config', of: ['src/config/load.ts', 'src/cli/check-config.ts', 'src/cli/running.ts'] },
  { name: 'daemon', of: ['src/app.ts', 'src/cli/run.ts'] },
]

interface Graph {
  getModuleInfo(module: string): { readonly importedIds: readonly string[] } | null
}

/** Returns the given modules and everything that they import. */
function reachable(from: readonly string[], graph: Graph, found = new Set<string>()): Set<string> {
  for (const module of from.filter((one) => !found.has(one))) {
    found.add(module)
    reachable(graph.getModuleInfo(module)?.importedIds ?? [], graph, found)
  }
  return found
}

/** Assigns modules to the files; the bundler assigns the others. */
function fileOf(): (module: string, graph: Graph) => string | null {
  let files: { readonly name: string; readonly modules: Set<string> }[] | undefined
  return (module, graph) => {
    files ??= FILES.map(({ name, of }) => ({
      name,
      modules: reachable(
        of.map((path) => join(root, path)),
        graph,
      ),
    }))
    // The main module awaits the end of the program, so no other module may depend on its file.
    if (module === MAIN) return null
    return files.find(({ modules }) => modules.has(module))?.name ?? null
  }
}

/**
 * Replaces imports of built-in modules with `process.getBuiltinModule`. For an import, Node.js reads all exports, and
 * some are getters that load other modules: `node:http` loads undici, which takes longer than this whole program.
 * Source: `syncExports` in `lib/internal/bootstrap/realm.js` of Node.js.
 */
const builtinsAsObjects: Plugin = {
  name: 'builtins-as-objects',
  renderChunk: (code) => ({
    code: code.replaceAll(/^import (.+) from "([^".]+)";$/gm, (_line, names: string, module: string) => {
      // An import may have both forms: the module, and some of its exports.
      const [whole = '', some] = names.split(', {')
      const rest = some === undefined ? '' : ` const {${some.replaceAll(' as ', ': ')} = ${whole};`
      return `const ${whole.replaceAll(' as ', ': ')} = process.getBuiltinModule("${module}");${rest}`
    }),
  }),
}

/** The realtime library uses `ws`, but also checks for the WebSocket of Node.js, which makes Node.js load it. */
const noWebSocketOfNode: Plugin = {
  name: 'no-websocket-of-node',
  transform: {
    filter: { id: /engine\.io-client\/build\/[a-z-]+\/transports\/websocket\.js$/ },
    handler: (code) => code.replace('globalThis.WebSocket || globalThis.MozWebSocket', 'undefined'),
  },
}

/** Escapes characters outside ASCII: a single one of them doubles V8's memory for the whole text. */
const ascii: Plugin = {
  name: 'ascii',
  renderChunk: (code) => ({
    code: code.replaceAll(/[^\0-\x7f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`),
  }),
}

/** Empties a folder, and writes the program into it. */
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
      ssr: MAIN,
      outDir: folder,
      emptyOutDir: true,
      target: 'node24',
      // A stack trace names the function, and a comment in the bundle names the source file. Node.js would read a
      // source map at each start.
      minify: false,
      sourcemap: false,
      license: { fileName: 'licences.md' },
      rolldownOptions: {
        external: isBuiltin,
        // Other parts may load a module on demand that the daemon always loads.
        checks: { ineffectiveDynamicImport: false, bundlerTimings: false },
        output: {
          entryFileNames: 'main.js',
          chunkFileNames: '[name].js',
          keepNames: true,
          charset: 'ascii',
          comments: { jsdoc: false, annotation: false },
          // All imports of a file's modules are in this file or an earlier one, so no file depends on a later one.
          codeSplitting: { includeDependenciesRecursively: false, groups: [{ name: fileOf(), debugName: 'files' }] },
        },
      },
    },
  })
}

if (import.meta.main) await bundle(join(root, 'dist'))
