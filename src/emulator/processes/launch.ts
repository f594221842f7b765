/** The command line of an app's process: what confines it, and what ends it with the hub. */
import { execFile } from 'node:child_process'
import { realpath } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { ROOT } from '../../base/root.ts'

/** What every app may read beside its own folder. */
export const SDK = fileURLToPath(new URL('src/emulator/sdk/', ROOT))

export interface Launch {
  readonly id: string
  readonly version: string
  /** Absolute path of the app's code. */
  readonly folder: string
  /** Relative to the folder. */
  readonly main: string
  /** What its heap may hold, in bytes. */
  readonly memoryLimit: number
}

export interface CommandLine {
  readonly file: string
  readonly args: readonly string[]
}

/** The permission model does not know SQLite, which would read and write anywhere. */
export async function commandLine({ id, version, folder, main, memoryLimit }: Launch): Promise<CommandLine> {
  const node = [
    '--permission',
    // Where links lead to: that is what the permission model compares.
    `--allow-fs-read=${await realpath(folder)}`,
    `--allow-fs-read=${SDK}`,
    '--no-experimental-sqlite',
    '--disable-sigusr1',
    '--expose-gc',
    `--max-old-space-size=${Math.max(16, Math.round(memoryLimit / 1024 / 1024))}`,
    `${SDK}runner.js`,
    id,
    version,
    main,
  ]
  endsWithHub ??= findWrapper()
  const wrapper = await endsWithHub
  if (wrapper === undefined) return { file: process.execPath, args: node }
  return { file: wrapper, args: [...WRAPPING, '--', process.execPath, ...node] }
}

const WRAPPING = ['--pdeathsig', 'KILL']
const PLACES = ['/usr/bin/setpriv', '/bin/setpriv']
let endsWithHub: Promise<string | undefined> | undefined

/**
 * On Linux the kernel can end a process with the one that started it, busy or not. Elsewhere the end of the pipe to the
 * hub does, once the app lets go of its thread.
 */
async function findWrapper(): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined
  for (const place of PLACES) if (await runs(place)) return place
  return undefined
}

function runs(place: string): Promise<boolean> {
  const args = [...WRAPPING, '--', process.execPath, '--version']
  return new Promise((resolve) => {
    execFile(place, args, { timeout: 5000 }, (error) => resolve(error === null))
  })
}
