/** The texts of an app by language: `locales/<language>.json` in its folder. */
import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { readPlainText } from '../../base/read-plain.ts'

const MOST_BYTES = 256 * 1024
const FILE = /^([a-z]{2,3}(?:-[A-Za-z]+)?)\.json$/

/** What cannot be read is left out. */
export function localesIn(folder: string): Readonly<Record<string, unknown>> {
  const texts: Record<string, unknown> = {}
  for (const name of namesIn(join(folder, 'locales'))) {
    const language = FILE.exec(name)?.[1]
    const text = language === undefined ? undefined : read(join(folder, 'locales', name))
    if (language !== undefined && text !== undefined) texts[language] = text
  }
  return texts
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch {
    return []
  }
}

function read(path: string): unknown {
  try {
    // A link would lead the hub to where the app itself may not read.
    const file = lstatSync(path)
    return file.isFile() && file.size <= MOST_BYTES ? JSON.parse(readPlainText(path)) : undefined
  } catch {
    return undefined
  }
}
