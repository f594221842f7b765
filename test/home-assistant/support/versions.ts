/** The versions of Home Assistant that are tested: the oldest supported version, some in between, and the newest. */
import { findPython, type Python } from './python.ts'

interface Version {
  readonly name: string
  readonly python: string
}

export interface TestedVersion extends Version {
  /** What Home Assistant does with a device when a user deletes one of its entities. */
  readonly deleting: 'clears the device' | 'leaves the device'
  /** The Python for this version; `undefined` if the version cannot be installed. */
  readonly runtime: Python | undefined
}

const OLDER: readonly Version[] = [
  { name: '2025.4.4', python: '3.13' },
  { name: '2026.6.4', python: '3.14' },
  { name: '2026.10.4', python: '3.14' },
]
/** Used if PyPI is not reachable, or if newer versions need a Python that cannot be installed. */
export const KNOWN: Version = { name: '2026.11.0', python: '3.14' }

/** Python version → release of Debian. */
const DEBIANS: Readonly<Record<string, string>> = { '3.13': 'trixie', '3.14': 'forky' }
const PYPI = 'https://pypi.org/simple/homeassistant/'
const DAY_MS = 86_400_000

/**
 * Returns the newest version and, in daily rotation, one of the older ones; or those that `HOME_ASSISTANT_VERSION`
 * names: `all`, `beta` (the newest, including betas), or a version on PyPI. Reports a version whose Python cannot be
 * installed. With `REQUIRE_HOME_ASSISTANT=1`, such a version is an error.
 */
export async function testedVersions(env: NodeJS.ProcessEnv = process.env): Promise<TestedVersion[]> {
  const { HOME_ASSISTANT_VERSION: wanted, REQUIRE_HOME_ASSISTANT: required } = env
  const known = [...OLDER, KNOWN].find(({ name }) => name === wanted)
  const chosen = known === undefined ? choose(wanted, await published(), Date.now()) : [known]
  process.stderr.write(`tested against Home Assistant ${chosen.map(({ name }) => name).join(', ')}\n`)
  return chosen.map((version) => {
    const { name, python } = version
    const runtime = runtimeOf(version)
    if (runtime === undefined) {
      const why = `Python ${python} is not installed, and installing a Debian that has it needs root and debootstrap`
      if (required === '1')
        throw new Error(`REQUIRE_HOME_ASSISTANT=1, but Home Assistant ${name} cannot be tested: ${why}`)
      process.stderr.write(`skipped: the tests against Home Assistant ${name}, because ${why}\n`)
    }
    const deleting = compare(name, '2026.11.0b0') < 0 ? 'clears the device' : 'leaves the device'
    return { ...version, deleting, runtime }
  })
}

export function choose(
  wanted: string | undefined,
  onPyPI: readonly Version[],
  now: number,
  canRun = (version: Version) => runtimeOf(version) !== undefined,
): Version[] {
  const newest = (betas: boolean) =>
    onPyPI
      .filter((version) => (betas || !version.name.includes('b')) && canRun(version))
      .reduce((best, version) => (compare(version.name, best.name) > 0 ? version : best), KNOWN)
  if (wanted === 'all') return [...OLDER, newest(false)]
  if (wanted === 'beta') return [newest(true)]
  if (wanted === undefined) return [...OLDER.slice(Math.floor(now / DAY_MS) % OLDER.length).slice(0, 1), newest(false)]
  const named = onPyPI.filter(({ name }) => name === wanted)
  if (named.length === 0) throw new Error(`there is no Home Assistant ${wanted} to test against`)
  return named
}

/** Resolves with the versions on PyPI, or with an empty list if PyPI is not reachable. */
export async function published(index = PYPI): Promise<Version[]> {
  try {
    const headers = { accept: 'application/vnd.pypi.simple.v1+json' }
    const answer = await fetch(index, { headers, signal: AbortSignal.timeout(30_000) })
    const { files }: { files: readonly Record<string, unknown>[] } = JSON.parse(await answer.text())
    return files.flatMap(({ filename, yanked, 'requires-python': python }) => {
      const [, name] = /^homeassistant-(\d+\.\d+\.\d+(?:b\d+)?)-py3/.exec(String(filename)) ?? []
      const [needed] = /3\.\d+/.exec(String(python)) ?? []
      return name === undefined || needed === undefined || yanked !== false ? [] : [{ name, python: needed }]
    })
  } catch (error) {
    process.stderr.write(`cannot read the versions of Home Assistant from PyPI: ${String(error)}\n`)
    return []
  }
}

function runtimeOf({ python }: Version): Python | undefined {
  return findPython(python, DEBIANS[python])
}

/** Compares two versions; a beta precedes its release. */
function compare(one: string, other: string): number {
  const numbers = (name: string) => (name.includes('b') ? name : `${name}b999`).split(/[.b]/).map(Number)
  const theirs = numbers(other)
  return (
    numbers(one)
      .map((number, i) => number - (theirs[i] ?? 0))
      .find((difference) => difference !== 0) ?? 0
  )
}
