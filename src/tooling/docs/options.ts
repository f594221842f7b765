/** The tables of options. */
import { CONFIG_VARIABLE, DEFAULT_HUB_NAME, HUB_NAME_VARIABLE, hubOptions, options } from '../../config/options.ts'
import { about } from '../../config/schemas.ts'
import { environmentName, fileKey, type Option, type Table } from '../../config/table.ts'
import { plain } from './config-schema.ts'
import { code, markdownTable } from './markdown.ts'

function fallback({ required, default: value }: Option): string {
  if (required) return 'required'
  if (value === null) return '—'
  return code(typeof value === 'string' ? value : JSON.stringify(plain(value)))
}

function tableOf(table: Table, shownPath: (path: string) => string, variable: (path: string) => string): string {
  return markdownTable(
    ['Option', 'Environment', 'Value', 'Default', 'Meaning'],
    Object.entries(table).map(([path, option]) => [
      code(shownPath(path)),
      code(variable(path)),
      about(option.schema).name,
      fallback(option),
      option.sensitive
        ? `${option.doc} Or ${code(fileKey(shownPath(path)))}, ${code(`${variable(path)}_FILE`)}.`
        : option.doc,
    ]),
  )
}

export function optionsSection(): string {
  return [
    `${code('--config')} or ${code(CONFIG_VARIABLE)} names the file; the environment wins over it. Durations are written like ${code('500ms')}, ${code('10s')}, ${code('2m')}, ${code('1h')}; sizes like ${code('64KiB')}, ${code('1MiB')}.`,
    tableOf(
      hubOptions,
      (path) => `hubs.<name>.${path}`,
      (path) => environmentName(`hub.${path}`),
    ),
    `The ${code('HUB2MQTT_HUB_…')} variables describe one hub: the one named by ${code(HUB_NAME_VARIABLE)}, else the file's only hub, else ${code(DEFAULT_HUB_NAME)}.`,
    tableOf(options, (path) => path, environmentName),
  ].join('\n\n')
}
