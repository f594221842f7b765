/**
 * Vitest's collector fails at the first file that it cannot parse. This collector skips incomplete files of child
 * processes that were killed while they were writing their coverage, or that are still writing.
 */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import collector from '@vitest/coverage-v8'

/** Moves the written files to a new folder, away from children that are still writing. Returns the folder. */
async function takeWritten(folder: string): Promise<string> {
  if (!existsSync(folder)) return folder
  const copied = join(dirname(folder), randomUUID())
  await rename(folder, copied)
  for (const name of await readdir(copied)) {
    const path = join(copied, name)
    if (!isJson(await readFile(path, 'utf8'))) await rm(path)
  }
  return copied
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const tolerant: typeof collector = {
  ...collector,
  async takeCoverage(options) {
    const folder = tolerant.extendedContextCoverageDir
    if (folder === undefined) return await collector.takeCoverage?.call(tolerant, options)
    tolerant.extendedContextCoverageDir = await takeWritten(folder)
    try {
      return await collector.takeCoverage?.call(tolerant, options)
    } finally {
      // Restore the folder: in a worker that runs several test files, the children of the next file write to it.
      tolerant.extendedContextCoverageDir = folder
    }
  },
  async getProvider() {
    const provider = await collector.getProvider()
    const resolveOptions = provider.resolveOptions.bind(provider)
    // Rename the provider, because with its own name, `v8`, the workers would not load this module.
    provider.resolveOptions = () => ({
      ...resolveOptions(),
      provider: 'custom',
      customProviderModule: fileURLToPath(import.meta.url),
    })
    return provider
  },
}

export default tolerant
