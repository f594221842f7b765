/** Copies the folder of an app durably and within limits, rejects unsafe links, and reads the app's texts. */
import { globSync, readdirSync, realpathSync } from 'node:fs'
import { lstat, mkdir, open, readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readPlainText } from '../../base/read-plain.ts'
import { syncFolder } from './data-folder.ts'
import { isBelow, ManifestError, real } from './manifest.ts'

const COPY_LIMITS = { bytes: 100 * 1024 * 1024, entries: 20_000, depth: 32 }

type Copy = { readonly root: string; readonly limits: typeof COPY_LIMITS; bytes: number; entries: number }

/**
 * Copies an app to `target`, which must not exist. Replaces a link to a file of the app with a copy of that file.
 * @throws ManifestError for other links, for anything except files and folders, or if a limit is exceeded
 */
export async function copyApp(source: string, target: string, limits = COPY_LIMITS): Promise<void> {
  await copyFolder({ root: await realpath(source), limits, bytes: 0, entries: 0 }, source, target, 0)
}

async function copyFolder(copy: Copy, source: string, target: string, depth: number): Promise<void> {
  if (depth > copy.limits.depth) throw new ManifestError(`${source}: more than ${copy.limits.depth} folders deep`)
  await mkdir(target, { mode: 0o700 })
  for (const name of await readdir(source)) {
    copy.entries++
    if (copy.entries > copy.limits.entries) throw new ManifestError(`${source}: more than ${copy.limits.entries} files`)
    await copyEntry(copy, join(source, name), join(target, name), depth)
  }
  await syncFolder(target)
}

async function copyEntry(copy: Copy, source: string, target: string, depth: number): Promise<void> {
  const found = await lstat(source)
  if (found.isDirectory()) await copyFolder(copy, source, target, depth + 1)
  else if (found.isFile()) await copyFile(copy, source, target)
  else if (found.isSymbolicLink()) await copyFile(copy, await linkedFile(copy, source), target)
  else throw new ManifestError(`${source}: not a file or folder`)
}

async function linkedFile({ root }: Copy, link: string): Promise<string> {
  const file = await realpath(link).catch(() => undefined)
  if (file === undefined) throw new ManifestError(`${link}: a broken link`)
  if (!isBelow(root, file)) throw new ManifestError(`${link}: a link that leads out of the app's folder`)
  if (!(await stat(file)).isFile()) throw new ManifestError(`${link}: a link to something that is not a file`)
  return file
}

/** Copies a file in chunks to check the limit, because the file may grow while it is copied. */
async function copyFile(copy: Copy, source: string, target: string): Promise<void> {
  await using from = await open(source, 'r')
  const { mode } = await from.stat()
  await using to = await open(target, 'wx', 0o600 | (mode & 0o100))
  for await (const chunk of from.createReadStream()) {
    copy.bytes += chunk.length
    if (copy.bytes > copy.limits.bytes) throw new ManifestError(`${copy.root}: more than ${copy.limits.bytes} bytes`)
    await to.writeFile(chunk)
  }
  await to.sync()
}

/** Rejects links that lead out of a folder, because Node's permission model follows links. @throws ManifestError */
export function refuseLinksOut(folder: string): void {
  const root = realpathSync(folder)
  for (const link of linksIn(folder)) {
    const target = real(link)
    if (target !== undefined && target !== root && !isBelow(root, target)) {
      throw new ManifestError(`${link}: a link that leads out of the app's folder`)
    }
  }
}

function linksIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isSymbolicLink()) return [path]
    return entry.isDirectory() ? linksIn(path) : []
  })
}

const LOCALE_FILE = /^([a-z]{2,3}(?:-[A-Za-z]+)?)\.json$/

/** Reads the app's texts by language from `locales/<language>.json`. Skips unreadable files. */
export function localesIn(folder: string): Readonly<Record<string, unknown>> {
  const texts: Record<string, unknown> = {}
  for (const name of globSync('*.json', { cwd: join(folder, 'locales') }).sort()) {
    const language = LOCALE_FILE.exec(name)?.[1]
    const text = language === undefined ? undefined : readLocale(join(folder, 'locales', name))
    if (language !== undefined && text !== undefined) texts[language] = text
  }
  return texts
}

function readLocale(path: string): unknown {
  try {
    return JSON.parse(readPlainText(path))
  } catch {
    return undefined
  }
}
