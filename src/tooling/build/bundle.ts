/**
 * `npm run build` makes the program of package and image: one file with everything that the daemon loads, its libraries too, and one for
 * each part that is loaded on demand. To find and read hundreds of files is most of a start.
 */
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'vite'
import { ROOT } from '../../base/root.ts'

const root = fileURLToPath(ROOT)
const MAIN = join(root, 'src/main.ts')

/** What only a checkout has; and what a library does without. */
const ABSENT = ['vite', 'bufferutil', 'utf-8-validate']

/**
 * Modules that are loaded together are one file: all that these import, except what an earlier file has. The
 * first is what every command line needs; a health check, which comes every few seconds, needs the second, too.
 */
const FILES = [
  { name: 'start', of: ['src/main.ts'] },
  { name: 'config', of: ['src/config/load.ts', 'src/cli/check-config.ts', 'src/cli/running.ts'] },
  { name: 'daemon', of: ['src/app.ts', 'src/cli/run.ts'] },
]

interface Graph {
  getModuleInfo(module: string): { readonly importedIds: readonly string[] } | null
}

/** All that some modules import, themselves included. */
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
 * When a built-in module is imported, Node reads all its exports, getters included, which load what they return: for
 * `node:http` an undici of its own, which takes longer than all of ours. Taken as an object, a module costs what is used.
 * Source: `syncExports` in Node's `lib/internal/bootstrap/realm.js`.
 */
const builtinsAsObjects: Plugin = {
  name: 'builtins-as-objects',
  renderChunk: (code) => ({
    code: code.replaceAll(/^import (.+) from "([^".]+)";$/gm, (_line, names: string, module: string) => {
      // Both at once: the module, and some of what it exports.
      const [whole = '', some] = names.split(', {')
      const rest = some === undefined ? '' : ` const {${some.replaceAll(' as ', ': ')} = ${whole};`
      return `const ${whole.replaceAll(' as ', ': ')} = process.getBuiltinModule("${module}");${rest}`
    }),
  }),
}

/** The realtime library looks for Node's WebSocket even if it uses that of `ws`, and the look makes Node load it. */
const noWebSocketOfNode: Plugin = {
  name: 'no-websocket-of-node',
  transform: {
    filter: { id: /engine\.io-client\/build\/[a-z-]+\/transports\/websocket\.js$/ },
    handler: (code) => code.replace('globalThis.WebSocket || globalThis.MozWebSocket', 'undefined'),
  },
}

/** Only licence comments have other characters; with one of them, V8 needs twice the memory for the whole text. */
const ascii: Plugin = {
  name: 'ascii',
  renderChunk: (code) => ({
    code: code.replaceAll(/[^\0-\x7f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`),
  }),
}

/** Writes the program into a folder, which is emptied before. */
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
        // What the daemon loads in any case may be loaded on demand elsewhere.
        checks: { ineffectiveDynamicImport: false },
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
