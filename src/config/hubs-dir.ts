/** A folder with one file for each hub: `<name>.yaml`, `.yml` or `.json`, with the hub's options at its top. */
import { basename, extname, join } from 'node:path'
import * as v from 'valibot'
import { type ConfigFile, type FileMap, type ReadFile, readConfigFile, readFailure } from './file.ts'
import type { Mistakes } from './mistakes.ts'
import { EXPECTED_NAME, hubName } from './options.ts'

/** Returns the names in a folder, or throws with a `code` such as `ENOENT`. */
export type ReadFolder = (path: string) => readonly string[]

export interface HubFile {
  readonly name: string
  /** As if its options stood below `hubs` and the hub's name. */
  readonly file: ConfigFile
  readonly options: FileMap
}

const KINDS = ['.yaml', '.yml', '.json']

/** The files in the order of their names. Other files, and names that begin with a dot, are ignored. */
export function hubFilesIn(names: readonly string[]): string[] {
  return names.filter((name) => !name.startsWith('.') && KINDS.includes(extname(name))).toSorted()
}

interface FolderRequest {
  readonly readFolder: ReadFolder
  readonly readFile: ReadFile
  readonly mistakes: Mistakes
}

/** Adds what is wrong with the folder or a file to `mistakes`. */
export function readHubsDir(folder: string, { readFolder, readFile, mistakes }: FolderRequest): HubFile[] {
  let names: string[]
  try {
    names = hubFilesIn(readFolder(folder))
  } catch (error) {
    mistakes.add('hubs_dir', `the folder that it names cannot be read: ${readFailure(error)}`)
    return []
  }
  return names.flatMap((entry) => {
    const path = join(folder, entry)
    const name = basename(entry, extname(entry))
    if (!v.is(hubName, name)) {
      mistakes.add(path, `${EXPECTED_NAME} before its ending`, 'hubs')
      return []
    }
    const file = readConfigFile(path, readFile, mistakes)
    return file === undefined ? [] : [{ name, options: file.root, file: below(file, name) }]
  })
}

function below(file: ConfigFile, name: string): ConfigFile {
  const root: FileMap = new Map([['hubs', new Map([[name, file.root]])]])
  return { ...file, root, where: (keys) => file.where(keys.slice(2)) }
}
