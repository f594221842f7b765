/** Text of `config/hub2mqtt.example.yaml`: every option with its meaning; those not needed are commented out. */
import { stringify } from 'yaml'
import { hubOptions, options } from '../../config/options.ts'
import { environmentName, fileKey, nest, type Option, type Table } from '../../config/table.ts'

const HEAD = `# yaml-language-server: $schema=./hub2mqtt.schema.json
# Every option of hub2mqtt. A line with # directly before an option shows its default, or an example if it
# has none: remove the # to use it.
`

interface Row {
  readonly path: string
  readonly option: Option
}

const isRow = (node: unknown): node is Row => typeof node === 'object' && node !== null && 'option' in node

function rowsOf(table: Table): Map<string, unknown> {
  return nest(Object.entries(table).map(([path, option]) => [path, { path, option }]))
}

/** An empty default shows nothing of what one would write. */
function isNothing(shown: unknown): boolean {
  return shown === null || (Array.isArray(shown) && shown.length === 0) || (shown instanceof Map && shown.size === 0)
}

function optionLines(key: string, { option }: Row, indent: string): string[] {
  const { doc, required, sensitive, example, default: shown = null } = option
  const active = required ? '' : '#'
  const lines = [
    `${indent}# ${doc}`,
    ...stringify({ [key]: isNothing(shown) ? example : shown })
      .trimEnd()
      .split('\n')
      .map((line) => `${indent}${active}${line}`),
  ]
  if (sensitive) lines.push(`${indent}# Or the path of a file that contains it, as ${fileKey(key)}.`)
  return lines
}

function treeLines(tree: ReadonlyMap<string, unknown>, indent: string): string[] {
  return [...tree].flatMap(([key, node]) => {
    if (isRow(node)) return optionLines(key, node, indent)
    return node instanceof Map ? [`${indent}${key}:`, ...treeLines(node, `${indent}  `)] : []
  })
}

export function exampleConfig(): string {
  const hub = treeLines(rowsOf(hubOptions), '    ')
  return [
    HEAD,
    `# The hubs, each under its name in topics. For a single hub, all options can come from the environment instead`,
    `# (${environmentName('hub.url')}, ${environmentName('hub.api_key')}, …).`,
    'hubs:',
    '  home:',
    ...hub,
    '',
    ...treeLines(rowsOf(options), ''),
    '',
  ].join('\n')
}
