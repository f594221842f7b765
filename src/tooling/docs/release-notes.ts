/** `node src/tooling/docs/release-notes.ts v1.2.3` prints the changelog's section for the version of the tag. */
import { readFileSync } from 'node:fs'
import { VERSION } from '../../base/version.ts'

function fail(why: string): never {
  console.error(why)
  process.exit(1)
}

const [tag] = process.argv.slice(2)
if (tag !== `v${VERSION}`) fail(`expected the tag v${VERSION} of package.json, not ${tag}`)
const changelog = readFileSync(new URL('../../../CHANGELOG.md', import.meta.url), 'utf8')
const sections = changelog.split(/^## /m).slice(1)
const section = sections.find((text) => text.startsWith(`[${VERSION}] - `))
if (section === undefined) fail(`CHANGELOG.md has no section for ${VERSION} with a date`)
const notes = section.slice(section.indexOf('\n')).trim()
if (notes === '') fail(`CHANGELOG.md has no text for ${VERSION}`)
console.log(notes)
