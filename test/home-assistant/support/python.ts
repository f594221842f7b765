/** A Python environment with the Home Assistant that is tested against, made once and kept in `.cache`. */
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { execute } from '../../support/process.ts'

const PYTHON = '3.13'
const PINS = ['homeassistant==2025.4.4', 'paho-mqtt==2.1.0']
const FOLDER = join(import.meta.dirname, '../../../.cache/home-assistant')
const STAMP = join(FOLDER, 'installed')

/** Path of a Python that Home Assistant runs on, or `undefined` where there is none. */
export const python = findPython()

function findPython(): string | undefined {
  const onPath = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, `python${PYTHON}`))
  const pyenv = process.env['PYENV_ROOT'] ?? join(homedir(), '.pyenv')
  const byPyenv = globSync(join(pyenv, 'versions', `${PYTHON}*`, 'bin', `python${PYTHON}`))
  const found = [...byPyenv, ...onPath].find((path) => existsSync(path) && isPython(path))
  if (found !== undefined) return found
  if (process.env['REQUIRE_HOME_ASSISTANT'] === '1') {
    throw new Error(`REQUIRE_HOME_ASSISTANT=1, but there is no Python ${PYTHON}`)
  }
  process.stderr.write(`Python ${PYTHON} is not installed: the tests against a real Home Assistant are skipped\n`)
  return undefined
}

/** A shim of pyenv is there for versions that are not. */
function isPython(path: string): boolean {
  try {
    return execFileSync(path, ['--version'], { encoding: 'utf8' }).startsWith(`Python ${PYTHON}.`)
  } catch {
    return false
  }
}

/** Installs Home Assistant from PyPI unless that has been done; resolves to its `hass`. */
export async function installHomeAssistant(): Promise<string> {
  const venv = join(FOLDER, 'venv')
  const wanted = PINS.join('\n')
  const hass = join(venv, 'bin', 'hass')
  if (existsSync(hass) && existsSync(STAMP) && readFileSync(STAMP, 'utf8') === wanted) return hass
  process.stderr.write('installing Home Assistant from PyPI; this takes some minutes, once\n')
  await rm(venv, { recursive: true, force: true })
  await mkdir(FOLDER, { recursive: true })
  await execute(python ?? '', ['-m', 'venv', venv])
  const pip = (...what: string[]) =>
    execute(join(venv, 'bin', 'pip'), ['install', '--disable-pip-version-check', '--quiet', ...what])
  await pip(...PINS)
  await pip(pinnedFrontend(venv))
  await writeFile(STAMP, wanted)
  return hass
}

/** Without its frontend Home Assistant starts in recovery mode; it names the version that belongs to it. */
function pinnedFrontend(venv: string): string {
  const [constraints = ''] = globSync(join(venv, 'lib/python*/site-packages/homeassistant/package_constraints.txt'))
  const pin = readFileSync(constraints, 'utf8')
    .split('\n')
    .find((line) => line.startsWith('home-assistant-frontend=='))
  if (pin === undefined) throw new Error('Home Assistant names no frontend')
  return pin
}
