/** An app's topics, to copy into an automation. */
import { COMMANDS } from '../../../../../contract/commands.ts'
import { Card, Copy } from '../../parts/small.tsx'
import { S } from '../../strings.ts'
import type { PartProps } from './app.tsx'

const APP_COMMANDS = [
  ...new Set(COMMANDS.filter(({ target, argument }) => target === 'app' && !argument).map(({ name }) => name)),
]

export function TopicList({ entry, door: { store } }: PartProps) {
  const owner = { hub: entry.hub, app: entry.id }
  const { topics } = store
  const published = [
    entry.topic,
    topics.of('appEvent', owner),
    ...entry.further.value.keys(),
    ...[...entry.settings.value.keys()].map((name) => topics.of('setting', { ...owner, name })),
  ]
  return (
    <Card title={S.topics.title} wide>
      <h3>{S.topics.published}</h3>
      <List topics={published} />
      <details>
        <summary>{S.topics.commands}</summary>
        <List topics={APP_COMMANDS.map((name) => topics.appCommand(entry.hub, entry.id, name))} />
      </details>
    </Card>
  )
}

function List({ topics }: { readonly topics: readonly string[] }) {
  return (
    <ul class="topics">
      {topics.map((topic) => (
        <li key={topic}>
          <code>{topic}</code>
          <Copy text={topic} label={S.topics.copy(topic)} />
        </li>
      ))}
    </ul>
  )
}
