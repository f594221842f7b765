import type { Command } from '../../contract/command.ts'
import { createTopics } from '../../contract/topics.ts'

export const code = (text: string): string => `\`${text}\``

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

/** What the variable levels of a topic stand for. */
export const PLACEHOLDERS: Readonly<Record<string, string>> = {
  base: 'The option `mqtt.base_topic`.',
  hub: "The hub's name in the configuration.",
  app: "The app's id; bytes other than `A-Z a-z 0-9 . _ -` are written `%XX`.",
  name: 'The name of a setting, written the same way.',
  transaction: 'The name of a rollout, written the same way.',
  prefix: 'The option `discovery.prefix`.',
  object_id: 'The device: the encoded ids of the hub and the app.',
  platform: "Home Assistant's platform, such as `sensor`.",
  unique_id: "The entity's unique id.",
}

/** Formats each parameter of a topic template with `show`. */
export function address(template: string, show: (name: string) => string): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => show(name))
}

/** Levels that stand for parameters. They contain only characters that a topic does not encode. */
const at = { base: '_base_', hub: '_hub_', app: '_app_', name: '_name_' } as const
const topics = createTopics(at.base)
const template = (topic: string) => topic.replace(/(?<=^|\/)_([a-z]+)_(?=\/|$)/g, '{$1}')

/** Returns the templates of a command's topic and of the default topic for its answer. */
export function commandTopics({ target, name, argument }: Command): { topic: string; result: string } {
  const topic =
    target === 'bridge'
      ? topics.bridgeCommand(name)
      : target === 'hub'
        ? topics.hubCommand(at.hub, name)
        : topics.appCommand(at.hub, at.app, name, argument === undefined ? undefined : at.name)
  return { topic: template(topic), result: template(topics.parseCommand(topic)?.result ?? '') }
}
