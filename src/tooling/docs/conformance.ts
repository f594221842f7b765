/** The table of what is expected of hubs. */
import { EXPECTATIONS } from '../../cli/conformance/expectations.ts'
import { code, markdownTable } from './markdown.ts'

export function expectationsSection(): string {
  return markdownTable(
    ['Id', 'Mark', 'What is expected', 'Of which hubs'],
    EXPECTATIONS.map(({ id, mark, says, only }) => [code(id), mark, says, only?.map(code).join(', ') ?? 'all']),
  )
}
