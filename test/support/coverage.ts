/**
 * Vitest's own collector, which fails at the first file that it cannot read. A child process that is killed while it
 * writes down what it ran, or that still does so, leaves half a file.
 */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import collector from '@vitest/coverage-v8'

/** Takes what children have written in a folder out of the reach of others that still write; returns where it is now. */
export async function takeWritten(folder: string): Promise<string> {
  if (!existsSync(folder)) return folder
  const taken = join(dirname(folder), randomUUID())
  await rename(folder, taken)
  for (const name of await readdir(taken)) {
    const path = join(taken, name)
    if (!isJson(await readFile(path, 'utf8'))) await rm(path)
  }
  return taken
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
      // In a worker that runs several files, the children of the next one write there again.
      tolerant.extendedContextCoverageDir = folder
    }
  },
  async getProvider() {
    const provider = await collector.getProvider()
    const resolveOptions = provider.resolveOptions.bind(provider)
    // It calls itself `v8`, by which workers would not find the way here.
    provider.resolveOptions = () => ({
      ...resolveOptions(),
      provider: 'custom',
      customProviderModule: fileURLToPath(import.meta.url),
    })
    return provider
  },
}

export default tolerant
