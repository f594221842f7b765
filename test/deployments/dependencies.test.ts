import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

interface Package {
  readonly version: string
  readonly dev?: boolean
  readonly optional?: boolean
  readonly devOptional?: boolean
  readonly license?: string
  readonly integrity?: string
  readonly hasInstallScript?: boolean
}

const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
const lock: Readonly<Record<string, Package>> = JSON.parse(readFileSync('package-lock.json', 'utf8')).packages
const installed = Object.entries(lock).filter(([path]) => path !== '')
const production = installed.filter(([, one]) => !one.dev && !one.optional && !one.devOptional)

/** Licences with a single requirement: that their text is included. */
const PERMISSIVE = ['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD', 'Unlicense']

describe('the dependencies', () => {
  it('have exact versions and hashes', () => {
    const { dependencies, devDependencies, optionalDependencies } = manifest
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies })) {
      expect(version, name).toMatch(/^\d+\.\d+\.\d+$/)
    }
    for (const [path, { integrity }] of installed) expect(integrity, path).toMatch(/^sha512-/)
  })

  it('of production are few, as docs/internals/decisions.md says, have no install scripts, and have permissive licences', () => {
    const names = new Set(production.map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`))
    console.log(`${Object.keys(manifest.dependencies).length} named, ${names.size} installed in production`)
    expect(names.size).toBeLessThanOrEqual(115)
    expect(readFileSync('docs/internals/decisions.md', 'utf8')).toContain(
      `depends on ${Object.keys(manifest.dependencies).length} packages; with their dependencies, ${names.size} packages`,
    )
    for (const [path, { license, hasInstallScript }] of production) {
      expect(hasInstallScript, path).toBeUndefined()
      // This package declares its licence in an older form that the lock file does not contain.
      if (!path.endsWith('/xmlhttprequest-ssl')) expect(PERMISSIVE, path).toContain(license)
    }
  })
})
