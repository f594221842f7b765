/** An installation of Home Assistant from PyPI, which later runs and other checkouts reuse. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { execute } from '../../support/process.ts'
import { makeDebian, type Python } from './python.ts'
import type { TestedVersion } from './versions.ts'

const CACHE = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'hub2mqtt', 'home-assistant')

export interface Installation {
  /** The command that runs Home Assistant: a program and its first arguments. */
  readonly command: readonly [string, ...string[]]
  /** The folder that the program uses as `/`. */
  readonly root: string
  /** A folder for temporary files that the program can read. */
  readonly temporary: string
}

export async function installHomeAssistant({ name, runtime }: TestedVersion): Promise<Installation> {
  if (runtime === undefined) throw new Error(`Home Assistant ${name} cannot be installed here`)
  const folder = join(CACHE, name)
  if (!existsSync(folder)) {
    process.stderr.write(`installing Home Assistant ${name} from PyPI; this takes some minutes, once\n`)
    await mkdir(CACHE, { recursive: true })
    // Install into a temporary folder, because other processes may read the final folder or install the same version.
    const unfinished = await mkdtemp(join(CACHE, `${name}.`))
    await install(name, runtime, unfinished)
    await rename(unfinished, folder).catch(() => rm(unfinished, { recursive: true, force: true }))
  }
  return placesOf(runtime, folder)
}

/** Returns how to run Home Assistant: as a module, because the environment's scripts contain its original path. */
function placesOf(runtime: Python, folder: string): Installation {
  const python = '/environment/bin/python'
  return 'path' in runtime
    ? { command: [join(folder, python)], root: '', temporary: tmpdir() }
    : { command: ['chroot', folder, python], root: folder, temporary: join(folder, 'tmp') }
}

async function install(name: string, runtime: Python, folder: string): Promise<void> {
  const { command } = placesOf(runtime, folder)
  if ('path' in runtime) {
    await execute(runtime.path, ['-m', 'venv', join(folder, 'environment')])
  } else {
    await makeDebian(runtime.debian, folder)
    await execute('chroot', [folder, 'python3', '-m', 'venv', '/environment'])
  }
  const [program, ...first] = command
  const pip = (...what: string[]) => execute(program, [...first, '-m', 'pip', 'install', '--quiet', ...what])
  await pip(`homeassistant==${name}`)
  await pip(...required(folder))
}

/** Packages that Home Assistant would install when it first starts, for the integrations that the tests need. */
function required(folder: string): string[] {
  const [components = ''] = globSync(join(folder, 'environment/lib/python*/site-packages/homeassistant/components'))
  return ['frontend', 'mqtt', 'hassio'].flatMap((integration) => {
    const { requirements } = JSON.parse(readFileSync(join(components, integration, 'manifest.json'), 'utf8'))
    if (!Array.isArray(requirements)) throw new Error(`${integration} does not list its requirements`)
    return requirements.map(String)
  })
}
