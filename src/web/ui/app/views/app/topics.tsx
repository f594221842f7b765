/** An app's topics, to copy into an automation. */
import { COMMANDS } from '../../../../../contract/commands.ts'
import { Copy } from '../../parts/controls.tsx'
import { Card } from '../../parts/layout.tsx'
import type { AppProps } from '../../parts/state.tsx'
import { usePage } from '../../session.ts'
import { defineStrings } from '../../strings.ts'

const text = defineStrings('topics', {
  title: 'Topics',
  published: 'Published',
  commands: 'Commands',
  copy: 'Copy {topic}',
})

const APP_COMMANDS = [
  ...new Set(COMMANDS.filter(({ target, argument }) => target === 'app' && !argument).map(({ name }) => name)),
]

export function TopicList({ entry }: AppProps) {
  const owner = { hub: entry.hub, app: entry.id }
  const { topics } = usePage().store
  const published = [
    entry.topic,
    topics.of('appEvent', owner),
    ...entry.further.value.keys(),
    ...[...entry.settings.value.keys()].map((name) => topics.of('setting', { ...owner, name })),
  ]
  return (
    <Card title={text.title} wide>
      <h3>{text.published}</h3>
      <List topics={published} />
      <details>
        <summary>{text.commands}</summary>
        <List topics={APP_COMMANDS.map((name) => topics.appCommand(entry.hub, entry.id, name))} />
      </details>
    </Card>
  )
}

function List({ topics }: { readonly topics: readonly string[] }) {
  return (
    <ul class="lines">
      {topics.map((topic) => (
        <li key={topic}>
          <code>{topic}</code>
          <Copy text={topic} label={text.copy({ topic })} />
        </li>
      ))}
    </ul>
  )
}
