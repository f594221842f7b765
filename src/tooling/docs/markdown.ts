/** Small pieces of Markdown. */

export const code = (text: string): string => `\`${text}\``

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}
