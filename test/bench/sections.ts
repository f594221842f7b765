/** The results page. Each section is measured separately. */
import { readFileSync, writeFileSync } from 'node:fs'

const PAGE = new URL('../../docs/internals/benchmarks.md', import.meta.url)
const NEXT = '\n## '

/** Returns a section of the page with its heading; an empty string if there is none. */
export function sectionOf(heading: string): string {
  const [, section] = readFileSync(PAGE, 'utf8').split(heading)
  return section === undefined ? '' : `${heading}${section.split(NEXT)[0]?.trimEnd()}`
}

/** Replaces the section that has the same heading, which is the first line of the text. */
export function writeSection(text: string): void {
  const before = sectionOf(text.split('\n')[0] ?? '')
  const page = readFileSync(PAGE, 'utf8')
  writePage(before === '' ? [page.trimEnd(), text] : [page.trimEnd().replace(before, () => text)])
}

export function writePage(parts: readonly string[]): void {
  writeFileSync(PAGE, `${parts.filter((part) => part !== '').join('\n\n')}\n`)
}
