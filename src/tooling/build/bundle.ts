/**
 * `npm run build` creates the program of the package and the image: one file with everything that the daemon loads,
 * including its libraries, and one for each part that is loaded on demand. Reading hundreds of files would take most of
 * the startup time.
 */
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'vite'
import { ROOT } from '../../base/root.ts'

const root = fileURLToPath(ROOT)
const MAIN = join(root, 'src/main.ts')

/** Packages of a checkout only, and optional ones of a library. */
const ABSENT = ['vite', 'bufferutil', 'utf-8-validate']

/**
 * Modules that are loaded together share a file: each file has everything that its modules import, except the content
 * of earlier files. The first is needed by every command; a health check, which runs every few seconds, also needs the
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

/** Everything that some modules import, including themselves. */
function reachable(from: readonly string[], graph: Graph, found = new Set<string>()): Set<string> {
  for (const module of from.filter((one) => !found.has(one))) {
    found.add(module)
    reachable(graph.getModuleInfo(module)?.importedIds ?? [], graph, found)
  }
  return found
}

/** Assigns modules to the files; the bundler decides about the others. */
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
    // It waits for the end of the program: nothing else may wait for it.
    if (module === MAIN) return null
    return files.find(({ modules }) => modules.has(module))?.name ?? null
  }
}

/**
 * When a built-in module is imported, Node reads all its exports. Some are getters that load further modules: for
 * `node:http`, a whole undici, which takes longer than all of ours. Used as an object, a module costs only what is
 * used.
 * Source: `syncExports` in Node's `lib/internal/bootstrap/realm.js`.
 */
const builtinsAsObjects: Plugin = {
  name: 'builtins-as-objects',
  renderChunk: (code) => ({
    code: code.replaceAll(/^import (.+) from "([^".]+)";$/gm, (_line, names: string, module: string) => {
      // Both forms: the module, and some of its exports.
      const [whole = '', some] = names.split(', {')
      const rest = some === undefined ? '' : ` const {${some.replaceAll(' as ', ': ')} = ${whole};`
      return `const ${whole.replaceAll(' as ', ': ')} = process.getBuiltinModule("${module}");${rest}`
    }),
  }),
}

/** The realtime library checks for Node's WebSocket even if it uses that of `ws`, and the check makes Node load it. */
const noWebSocketOfNode: Plugin = {
  name: 'no-websocket-of-node',
  transform: {
    filter: { id: /engine\.io-client\/build\/[a-z-]+\/transports\/websocket\.js$/ },
    handler: (code) => code.replace('globalThis.WebSocket || globalThis.MozWebSocket', 'undefined'),
  },
}

/** Only licence comments have other characters; a single one doubles V8's memory for the whole text. */
const ascii: Plugin = {
  name: 'ascii',
  renderChunk: (code) => ({
    code: code.replaceAll(/[^\0-\x7f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`),
  }),
}

/** Writes the program into a folder, after emptying it. */
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
      // A stack trace names the function, and the file of the source stands above it in the bundle. With a map, Node
      // would read all of it at each start.
      minify: false,
      sourcemap: false,
      license: { fileName: 'licences.md' },
      rolldownOptions: {
        external: isBuiltin,
        // A module that the daemon always loads may be loaded on demand elsewhere.
        checks: { ineffectiveDynamicImport: false, bundlerTimings: false },
        output: {
          entryFileNames: 'main.js',
          chunkFileNames: '[name].js',
          keepNames: true,
          charset: 'ascii',
          comments: { jsdoc: false, annotation: false },
          // Each file has all that its modules import, or a file before it has: none needs one that comes later.
          codeSplitting: { includeDependenciesRecursively: false, groups: [{ name: fileOf(), debugName: 'files' }] },
        },
      },
    },
  })
}

if (import.meta.main) await bundle(join(root, 'dist'))
