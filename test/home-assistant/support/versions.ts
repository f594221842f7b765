/** The versions of Home Assistant that are tested against: the oldest that is promised, and the newest there is. */
import { findPython, type Python } from './python.ts'

export interface Version {
  readonly name: string
  readonly python: string
  /** The release of Debian that has this Python. */
  readonly debian: string
  /** What deleting one entity in its interface does to the others of the device. */
  readonly deleting: 'clears the device' | 'leaves the device'
}

const VERSIONS: readonly Version[] = [
  { name: '2025.4.4', python: '3.13', debian: 'trixie', deleting: 'clears the device' },
  { name: '2026.11.0', python: '3.14', debian: 'forky', deleting: 'leaves the device' },
]

export interface TestedVersion extends Version {
  /** `undefined` where it cannot be had. */
  readonly runtime: Python | undefined
}

/**
 * All, or the one that `HOME_ASSISTANT_VERSION` names. One whose Python cannot be had is skipped with a line, and is
 * an error with `REQUIRE_HOME_ASSISTANT=1`.
 */
export function testedVersions(env: NodeJS.ProcessEnv = process.env): TestedVersion[] {
  const { HOME_ASSISTANT_VERSION: only, REQUIRE_HOME_ASSISTANT: required } = env
  const chosen = VERSIONS.filter(({ name }) => only === undefined || only === name)
  if (chosen.length === 0) throw new Error(`there is no test against Home Assistant ${only}`)
  return chosen.map((version) => {
    const { name, python, debian } = version
    const runtime = findPython(python, debian)
    if (runtime === undefined) {
      const why = `there is no Python ${python}, nor can a Debian that has it be made (as root, with debootstrap)`
      if (required === '1') throw new Error(`REQUIRE_HOME_ASSISTANT=1, but for Home Assistant ${name} ${why}`)
      process.stderr.write(`skipped: the tests against Home Assistant ${name}, as ${why}\n`)
    }
    return { ...version, runtime }
  })
}
