/** `node src/tooling/docs/release-notes.ts v1.2.3` prints the changelog's section for the version of the tag. */
import { readFileSync } from 'node:fs'
import { VERSION } from '../../base/version.ts'

/** The tag, the version and the changelog do not match. */
class ReleaseError extends Error {}

/** The section of a version, without its heading. */
function notesOf(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m).slice(1)
  const section = sections.find((text) => text.startsWith(`[${version}] - `))
  if (section === undefined) throw new ReleaseError(`CHANGELOG.md has no section for ${version} with a date`)
  const notes = section.slice(section.indexOf('\n')).trim()
  if (notes === '') throw new ReleaseError(`CHANGELOG.md says nothing about ${version}`)
  return notes
}

try {
  const [tag] = process.argv.slice(2)
  if (tag !== `v${VERSION}`) throw new ReleaseError(`expected the tag v${VERSION} of package.json, not ${tag}`)
  console.log(notesOf(readFileSync(new URL('../../../CHANGELOG.md', import.meta.url), 'utf8'), VERSION))
} catch (error) {
  if (!(error instanceof ReleaseError)) throw error
  console.error(error.message)
  process.exitCode = 1
}
