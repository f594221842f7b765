import { stringify } from 'yaml'
import { guardOptions } from '../../config/guard-options.ts'
import { CONFIG_VARIABLE, DEFAULT_HUB_NAME, HUB_NAME_VARIABLE, hubOptions, options } from '../../config/options.ts'
import { about } from '../../config/schemas.ts'
import { environmentName, fileKey, nest, type Option, type Table, type Tree } from '../../config/table.ts'
import { plain } from './config-schema.ts'
import { code, markdownTable } from './markdown.ts'

function fallback({ required, default: value = null }: Option): string {
  if (required) return 'required'
  if (value === null) return '—'
  return code(typeof value === 'string' ? value : JSON.stringify(plain(value)))
}

/** @param file the beginning of the paths in a file @param environment the beginning of the paths in variables */
function tableOf(table: Table, file = '', environment = ''): string {
  return markdownTable(
    ['Option', 'Environment', 'Value', 'Default', 'Meaning'],
    Object.entries(table).map(([path, option]) => {
      const [key, variable] = [file + path, environmentName(environment + path)]
      const doc = option.sensitive ? `${option.doc} Or ${code(fileKey(key))}, ${code(`${variable}_FILE`)}.` : option.doc
      return [code(key), code(variable), about(option.schema).name, fallback(option), doc]
    }),
  )
}

export function optionsSection(): string {
  return [
    `${code('--config')} or ${code(CONFIG_VARIABLE)} names the configuration file; environment variables override the values in the file. Examples of durations: ${code('500ms')}, ${code('10s')}, ${code('2m')}, ${code('1h')}, ${code('7d')}; of sizes: ${code('64KiB')}, ${code('1MiB')}.`,
    tableOf(hubOptions, 'hubs.<name>.', 'hub.'),
    `The ${code('HUB2MQTT_HUB_…')} variables configure one hub: the hub that ${code(HUB_NAME_VARIABLE)} names or, without this variable, the only hub in the file, otherwise ${code(DEFAULT_HUB_NAME)}.`,
    tableOf(others),
    `The options for the guardian, and for the app updates that it makes, are in [a separate table](guardian.md#options).`,
  ].join('\n\n')
}

/** The options that are not on the page of the guardian. */
const others = Object.fromEntries(Object.entries(options).filter(([path]) => !(path in guardOptions)))

export const guardOptionsSection = (): string => tableOf(guardOptions)

const HEAD = `# yaml-language-server: $schema=./hub2mqtt.schema.json
# Every option of hub2mqtt. A line with # directly before an option shows its default, or an example if it
# is empty: remove the # to use it.
`

/** Returns whether a default is empty, and so does not show what a value looks like. */
function isNothing(shown: unknown): boolean {
  return shown === null || (Array.isArray(shown) && shown.length === 0) || (shown instanceof Map && shown.size === 0)
}

function optionLines(key: string, option: Option, indent: string): string[] {
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

function treeLines(tree: Tree<Option>, indent: string): string[] {
  return [...tree].flatMap(([key, node]) =>
    node instanceof Map ? [`${indent}${key}:`, ...treeLines(node, `${indent}  `)] : optionLines(key, node, indent),
  )
}

/** Returns an example configuration with all options. Options that are not required are commented out. */
export function exampleConfig(): string {
  const hub = treeLines(nest<Option>(Object.entries(hubOptions)), '    ')
  return [
    HEAD,
    `# The hubs, each under its name in topics. For a single hub, all options can come from the environment instead`,
    `# (${environmentName('hub.url')}, ${environmentName('hub.api_key')}, …).`,
    'hubs:',
    '  home:',
    ...hub,
    '',
    ...treeLines(nest<Option>(Object.entries(options)), ''),
    '',
  ].join('\n')
}
