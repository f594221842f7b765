import { useSignal } from '@preact/signals'
import { isCrashed } from '../../../../../contract/classify.ts'
import { COMMANDS } from '../../../../../contract/commands.ts'
import { actionsOf } from '../../actions.ts'
import { type AppCommand, commandName, dataOf, refusal } from '../../commands.ts'
import { readTopic } from '../../live/store.ts'
import { Action, Alert, Badge, Card, Copy, Facts, Json, Report, Select, set } from '../../parts/controls.tsx'
import { AppIcon, Glyph } from '../../parts/icons.tsx'
import { confirm } from '../../parts/overlays.tsx'
import {
  type AppProps,
  CommandSwitch,
  crashMessage,
  lastState,
  StateBadge,
  troubleOf,
  UpdateBadge,
} from '../../parts/state.tsx'
import { hrefOf } from '../../route.ts'
import { usePage } from '../../session.ts'
import { defineStrings, formatCount, terms, textFor } from '../../terms.ts'
import { CrashCard, Crashes, Guardian, History } from './history.tsx'
import { commandRecipe, eventRecipe, payloadOf } from './recipes.ts'
import { Settings } from './settings.tsx'
import { Usage } from './usage.tsx'

const text = defineStrings('app', {
  gone: 'There is no app {id}.',
  elsewhere: 'The hub {hub} belongs to the fleet member {member}. See its apps on the page of that member.',
  copyId: 'Copy the id',
  details: 'Details',
  update: 'Update',
  changelog: 'What is new, from the public store',
  crashes: 'Crashes',
  channel: 'Channel',
  origin: 'Source',
  origins: { appstore: 'app store', devkit_run: 'development', devkit_install: 'development' },
  author: 'Author',
  sdk: 'SDK',
  compatibility: 'Compatibility',
  hasSettings: 'Has settings',
  devices: 'Devices',
  unavailable: '{total}, {bad} unavailable',
  flows: 'Flows',
  broken: '{total}, {bad} broken',
  diagnostics: {
    title: 'Diagnostics',
    record: 'The hub’s record',
    locales: 'Translations',
    send: 'Send report to developer',
    question: { title: 'Send a diagnostics report?', text: 'The hub sends the app’s output to its developer.' },
  },
  topics: 'Topics',
  published: 'Published',
  commands: 'Commands',
  copyTopic: 'Copy {topic}',
})

export function AppPage({ hub, id }: { readonly hub: string; readonly id: string }) {
  const { store } = usePage()
  const entry = store.app(hub, id)
  const member = store.ownerElsewhere(hub)
  const missing = member === undefined ? text.gone({ id }) : text.elsewhere({ hub, member })
  return (
    <div class="view">
      <a class="back" href={hrefOf({ at: 'apps' })}>
        <Glyph name="back" size={16} /> {terms.views.apps}
      </a>
      {entry === undefined ? (
        <>
          <h1 class="hidden">{id}</h1>
          <p class="empty">{store.complete.value ? missing : terms.loading}</p>
        </>
      ) : (
        <Found key={entry.topic} entry={entry} />
      )}
    </div>
  )
}

function Found({ entry }: AppProps) {
  const page = usePage()
  // If the app is crashed now, show the crash before all other cards.
  const crashed = isCrashed(entry.app.value)
  return (
    <>
      <Head entry={entry} />
      <div class={page.store.isAway(entry.hub) ? 'cards away' : 'cards'}>
        {crashed && <CrashCard key="crash" entry={entry} />}
        <div class="column">
          <Details entry={entry} />
          <Guardian entry={entry} />
        </div>
        <div class="column">
          <Usage entry={entry} />
        </div>
        {!crashed && <CrashCard key="crash" entry={entry} />}
        <Crashes entry={entry} />
        <History entry={entry} />
        <Settings entry={entry} />
        <Diagnostics entry={entry} />
        <Automate entry={entry} />
        <TopicList entry={entry} />
      </div>
    </>
  )
}

function Head({ entry }: AppProps) {
  const page = usePage()
  const app = entry.app.value
  const name = entry.name.value
  const outcome = entry.outcome.value
  const running = entry.running.value
  const trouble = troubleOf(entry, page.store)
  return (
    <header class="app-head">
      <AppIcon entry={entry} name={name} size={56} />
      <div class="title">
        <h1>{name}</h1>
        <p>
          <code>{entry.id}</code> <Copy text={entry.id} label={text.copyId} />
        </p>
        <p>
          <StateBadge entry={entry} store={page.store} />
          {trouble !== undefined && <Badge tone="bad">{terms.events[trouble]}</Badge>}
          {page.store.isAway(entry.hub) && <small>{lastState(app)}</small>}
          <span>{app.version ?? terms.unknown}</span>
          <UpdateBadge app={app} />
        </p>
      </div>
      <div class="buttons">
        {actionsOf(entry, page)
          .filter(({ command }) => command !== 'guard')
          .map((action) => (
            <Action
              {...action}
              key={action.key}
              tone={action.danger ? 'danger' : undefined}
              busy={running === action.key}
              refused={running === action.key ? undefined : action.refused}
            />
          ))}
      </div>
      {isCrashed(app) && readTopic(entry, 'crash') === undefined && <Alert>{crashMessage(app)}</Alert>}
      {outcome?.ok === false && <Alert>{outcome.text}</Alert>}
    </header>
  )
}

const yesNo = (value: boolean | null) => (value === null ? undefined : value ? terms.yes : terms.no)

/** Returns the total as text, with the number of bad items if there are any. */
function partly(total: number | null, bad: number | null, both: typeof text.broken): string | undefined {
  if (total === null) return undefined
  return bad ? both({ total: formatCount(total), bad: formatCount(bad) }) : formatCount(total)
}

function Details({ entry }: AppProps) {
  const app = entry.app.value
  const links = readTopic(entry, 'appLinks')
  const updates = commandName('autoupdate')
  const autoupdate = <CommandSwitch entry={entry} command="autoupdate" label={updates} on={app.autoupdate === true} />
  return (
    <Card title={text.details}>
      <Facts
        rows={[
          [terms.hub, entry.hub],
          [terms.columns.version, app.version],
          [text.update, app.latest_version ?? yesNo(app.update_available)],
          [text.changelog, readTopic(entry, 'appUpdate')?.release_summary],
          [terms.columns.enabled, yesNo(app.enabled) ?? terms.unknown],
          [text.crashes, app.crash_count === null ? undefined : formatCount(app.crash_count)],
          [updates, autoupdate],
          [text.channel, app.channel],
          [text.origin, app.origin === null ? undefined : textFor(text.origins, app.origin)],
          [text.author, app.author],
          [text.sdk, app.sdk === null ? undefined : String(app.sdk)],
          [text.compatibility, app.compatibility],
          [text.hasSettings, yesNo(app.has_settings)],
          [text.devices, links && partly(links.devices, links.devices_unavailable, text.unavailable)],
          [text.flows, links && partly(links.flows, links.flows_broken, text.broken)],
        ]}
      />
    </Card>
  )
}

function Diagnostics({ entry }: AppProps) {
  const page = usePage()
  const { target } = entry
  const request = (label: string, command: AppCommand, payload?: object) => ({
    label,
    refused: refusal(page, target, command),
    run: () => dataOf(target, command, payload),
  })
  const { title, record, locales, send, question } = text.diagnostics
  const report = request(send, 'get-std')
  const confirmFirst = async () => ((await confirm({ ...question, action: send })) ? await report.run() : undefined)
  return (
    <Report
      title={title}
      hint={terms.onDemand}
      requests={[
        request(record, 'get', { raw: true }),
        request(locales, 'get-locales'),
        { ...report, run: confirmFirst },
      ]}
    />
  )
}

function TopicList({ entry }: AppProps) {
  const { topics } = usePage().store
  const published = [
    entry.topic,
    topics.of('appEvent', entry.target),
    ...entry.topics.value.keys(),
    ...[...entry.settings.value.keys()].map((name) => topics.of('setting', { ...entry.target, name })),
  ]
  return (
    <Card title={text.topics} wide>
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
          <Copy text={topic} label={text.copyTopic({ topic })} />
        </li>
      ))}
    </ul>
  )
}

const automate = defineStrings('automate', {
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
      'Paste this into the YAML mode of a new script. In an automation, use the part after sequence as its actions.',
    automation: 'Paste this into the YAML mode of a new automation.',
    nodeRed: 'Menu, Import; then choose your broker in the MQTT node.',
    shell: 'Add the address and the login of your broker: -h, -u and -P.',
  },
})

const APP_COMMANDS: readonly string[] = [
  ...new Set(COMMANDS.filter(({ target, argument }) => target === 'app' && !argument).map(({ name }) => name)),
]
const PROGRAMS = ['homeAssistant', 'nodeRed', 'shell'] as const
const EVENTS = 'events'
/** Maximum length of the app's name in the label of a snippet. */
const MAX_NAME_LENGTH = 60

function Automate({ entry }: AppProps) {
  const page = usePage()
  const chosen = useSignal('restart')
  const { id, target } = entry
  const { topics } = page.store
  const command = chosen.value === EVENTS ? undefined : chosen.value
  const nameOf = (one: string) => (one === EVENTS ? automate.events : commandName(one))
  const label = automate.label({ app: entry.name.value.slice(0, MAX_NAME_LENGTH), action: nameOf(chosen.value) })
  const topic = command === undefined ? topics.of('appEvent', target) : topics.appCommand(target.hub, id, command)
  const payload = command && payloadOf(command, id)
  const refused = command && refusal(page, target, command)
  const hints = payload === undefined ? { ...automate.hints, homeAssistant: automate.hints.automation } : automate.hints
  const recipe = payload === undefined ? eventRecipe(label, topic) : commandRecipe(label, topic, payload)
  return (
    <Card
      title={automate.title}
      wide
      aside={
        <label class="check">
          {automate.what}
          <Select
            options={[...APP_COMMANDS, EVENTS]}
            chosen={chosen.value}
            choose={(one) => set(chosen, one)}
            nameOf={nameOf}
          />
        </label>
      }
    >
      {refused !== undefined && <p class="quiet">{automate.refused({ why: refused })}</p>}
      <Facts
        rows={[
          [automate.topic, <code>{topic}</code>],
          [
            automate.payload,
            payload === undefined ? undefined : payload === '' ? automate.empty : <code>{payload}</code>,
          ],
        ]}
      />
      {PROGRAMS.map((program) => (
        <div key={program}>
          <h3 class="buttons">
            {automate.programs[program]}
            <Copy text={recipe[program]} label={automate.copy({ program: automate.programs[program] })} />
          </h3>
          <p class="quiet">{hints[program]}</p>
          <Json value={recipe[program]} />
        </div>
      ))}
    </Card>
  )
}
