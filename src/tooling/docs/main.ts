/** `npm run docs` writes the generated files. With `--check`, it only lists outdated files, and exits with 1. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ExpectedError } from '../../base/errors.ts'
import { ROOT } from '../../base/root.ts'
import { copies, fillCopies } from './copies.ts'
import { files, fillSections, pages } from './generate.ts'

function current(path: string): string | undefined {
  const file = new URL(path, ROOT)
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

/** Returns a file's content with the generated parts filled in. @throws ExpectedError with the path of the file */
function filled(path: string): string {
  const text = current(path) ?? ''
  try {
    return fillCopies(fillSections(text, pages[path] ?? {}), copies[path] ?? [])
  } catch (error) {
    if (error instanceof ExpectedError) throw new ExpectedError(`${path}: ${error.message}`, { cause: error })
    throw error
  }
}

/** Returns the new content of the outdated files by path. */
function drifted(): Map<string, string> {
  const written = new Set([...Object.keys(pages), ...Object.keys(copies)])
  const wanted = [
    ...Object.entries(files).map(([path, generate]) => [path, generate()] as const),
    ...[...written].map((path) => [path, filled(path)] as const),
  ]
  return new Map(wanted.filter(([path, text]) => current(path) !== text))
}

function main(args: readonly string[]): number {
  if (args.some((arg) => arg !== '--check')) {
    console.error(`usage: node ${relative('.', fileURLToPath(import.meta.url))} [--check]`)
    return 2
  }
  const stale = drifted()
  for (const [path, text] of stale) {
    if (args.includes('--check')) {
      console.error(`${path} is outdated; run npm run docs`)
      continue
    }
    writeFileSync(new URL(path, ROOT), text)
    console.log(`wrote ${path}`)
  }
  return args.includes('--check') && stale.size > 0 ? 1 : 0
}

try {
  process.exitCode = main(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof ExpectedError)) throw error
  console.error(error.message)
  process.exitCode = 1
}
