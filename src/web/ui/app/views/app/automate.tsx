/** Snippets to copy, with which other programs send a command to an app or receive its events. */
import { useSignal } from '@preact/signals'
import { COMMANDS } from '../../../../../contract/commands.ts'
import { commandName, refusal } from '../../commands.ts'
import { Copy, Select, set } from '../../parts/controls.tsx'
import { Card, Facts, Json } from '../../parts/layout.tsx'
import type { AppProps } from '../../parts/state.tsx'
import { usePage } from '../../session.ts'
import { defineStrings } from '../../terms.ts'
import { commandRecipe, eventRecipe, payloadOf } from './recipes.ts'

const text = defineStrings('automate', {
  title: 'Automate',
  what: 'Action',
  events: 'Receive events',
  label: '{app}: {action}',
  topic: 'Topic',
  payload: 'Payload',
  empty: 'none',
  refused: 'The bridge currently refuses this action: {why}',
  copy: 'Copy for {program}',
  programs: { homeAssistant: 'Home Assistant', nodeRed: 'Node-RED', shell: 'Shell' },
  hints: {
    homeAssistant:
      'Paste it in the YAML mode of a new script. In an automation, use the part after sequence as its actions.',
    automation: 'Paste it in the YAML mode of a new automation.',
    nodeRed: 'Menu, Import; then choose your broker in the MQTT node.',
    shell: 'Add the address and the login of your broker: -h, -u and -P.',
  },
})

/** The app commands without an argument in their topic. */
export const APP_COMMANDS: readonly string[] = [
  ...new Set(COMMANDS.filter(({ target, argument }) => target === 'app' && !argument).map(({ name }) => name)),
]
const PROGRAMS = ['homeAssistant', 'nodeRed', 'shell'] as const
const EVENTS = 'events'
/** Maximum length of the app's name in a label. */
const MAX_NAME_LENGTH = 60

export function Automate({ entry }: AppProps) {
  const page = usePage()
  const chosen = useSignal('restart')
  const { id, target } = entry
  const { topics } = page.store
  const command = chosen.value === EVENTS ? undefined : chosen.value
  const nameOf = (one: string) => (one === EVENTS ? text.events : commandName(one))
  const label = text.label({ app: entry.name.value.slice(0, MAX_NAME_LENGTH), action: nameOf(chosen.value) })
  const topic = command === undefined ? topics.of('appEvent', target) : topics.appCommand(target.hub, id, command)
  const payload = command && payloadOf(command, id)
  const refused = command && refusal(page, target, command)
  const hints = payload === undefined ? { ...text.hints, homeAssistant: text.hints.automation } : text.hints
  const recipe = payload === undefined ? eventRecipe(label, topic) : commandRecipe(label, topic, payload)
  return (
    <Card
      title={text.title}
      wide
      aside={
        <label class="check">
          {text.what}
          <Select
            options={[...APP_COMMANDS, EVENTS]}
            chosen={chosen.value}
            choose={(one) => set(chosen, one)}
            nameOf={nameOf}
          />
        </label>
      }
    >
      {refused !== undefined && <p class="quiet">{text.refused({ why: refused })}</p>}
      <Facts
        rows={[
          [text.topic, <code>{topic}</code>],
          [text.payload, payload === undefined ? undefined : payload === '' ? text.empty : <code>{payload}</code>],
        ]}
      />
      {PROGRAMS.map((program) => (
        <div key={program}>
          <h3 class="buttons">
            {text.programs[program]}
            <Copy text={recipe[program]} label={text.copy({ program: text.programs[program] })} />
          </h3>
          <p class="quiet">{hints[program]}</p>
          <Json value={recipe[program]} />
        </div>
      ))}
    </Card>
  )
}
