/** `npm run docs` writes what is generated; with `--check` it only says what is no longer current, and exits with 1. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { files, fillSections, sections } from './generate.ts'

const root = new URL('../../', import.meta.url)
const README = 'README.md'

function current(path: string): string | undefined {
  try {
    return readFileSync(new URL(path, root), 'utf8')
  } catch {
    return undefined
  }
}

/** The files that differ from what they should hold, with what they should hold. */
function drifted(): Map<string, string> {
  const wanted = new Map(Object.entries(files).map(([path, generate]) => [path, generate()]))
  wanted.set(README, fillSections(current(README) ?? '', sections))
  return new Map([...wanted].filter(([path, text]) => current(path) !== text))
}

function main(args: readonly string[]): number {
  if (args.some((arg) => arg !== '--check')) {
    console.error(`usage: node ${relative('.', fileURLToPath(import.meta.url))} [--check]`)
    return 2
  }
  const stale = drifted()
  for (const [path, text] of stale) {
    if (args.includes('--check')) {
      console.error(`${path} is not current; run npm run docs`)
      continue
    }
    mkdirSync(new URL('.', new URL(path, root)), { recursive: true })
    writeFileSync(new URL(path, root), text)
    console.log(`wrote ${path}`)
  }
  return args.includes('--check') && stale.size > 0 ? 1 : 0
}

try {
  process.exitCode = main(process.argv.slice(2))
} catch (error) {
  console.error(`${README}: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
