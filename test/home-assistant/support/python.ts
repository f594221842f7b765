/** Provides a Python of a given version: from this machine, or from a newer Debian in a separate folder. */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, globSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { execute } from '../../support/process.ts'

/** A Python of this machine, or one that must be installed first. */
export type Python = { readonly path: string } | { readonly debian: string }

/** Folders of programs for root, which might be missing from the `PATH` of other users. */
const SYSTEM = ['/usr/sbin', '/sbin']
const SCRIPTS = '/usr/share/debootstrap/scripts'
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'

/** Finds a Python that exists or can be installed; `undefined` if there is none. `debian`: a release that has it. */
export function findPython(version: string, debian: string | undefined): Python | undefined {
  const name = `python${version}`
  const pyenv = process.env['PYENV_ROOT'] ?? join(homedir(), '.pyenv')
  const byPyenv = globSync(join(pyenv, 'versions', `${version}*`, 'bin', name))
  const path = [...byPyenv, ...onPath(name)].find((found) => isPython(found, version))
  if (path !== undefined) return { path }
  if (debian === undefined) return undefined
  return process.getuid?.() === 0 && onPath('debootstrap').length > 0 ? { debian } : undefined
}

/** Installs a Debian with its Python and the certificates of this machine; its programs run with `chroot`. */
export async function makeDebian(release: string, folder: string): Promise<void> {
  // An older debootstrap lacks the names of newer releases, but all use the same script and its default mirror.
  const script = existsSync(join(SCRIPTS, release)) ? [] : [join(SCRIPTS, 'sid')]
  const packages = '--include=python3,python3-venv,ca-certificates'
  const mirror = script.length > 0 ? ['', ...script] : []
  await execute('debootstrap', ['--variant=minbase', packages, release, folder, ...mirror])
  if (existsSync(CERTIFICATES)) cpSync(CERTIFICATES, join(folder, CERTIFICATES))
}

function onPath(name: string): string[] {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), ...SYSTEM]
  return folders.map((folder) => join(folder, name)).filter((path) => existsSync(path))
}

/** Returns whether the program works: some programs of pyenv only report that a version is not installed. */
function isPython(path: string, version: string): boolean {
  try {
    return execFileSync(path, ['--version'], { encoding: 'utf8' }).startsWith(`Python ${version}.`)
  } catch {
    return false
  }
}
