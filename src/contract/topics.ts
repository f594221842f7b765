/** The topics below one base topic: those of the table, and those of commands. No other module builds one. */
import { MEMBER_NAME } from '../base/member-name.ts'
import {
  type Held,
  type Owner,
  type OwnerKind,
  PUBLICATIONS,
  type Publication,
  type PublicationName,
  type PublicationParameters,
} from './publications.ts'
import { decodeLevel, encodeLevel, levelsBelow, type Parameters, Template, widest } from './templates.ts'

/** A topic of ours, on which something retained was found. */
export interface OwnTopic {
  readonly name: PublicationName
  readonly row: Publication
  readonly owner: Owner
}

const ROWS: readonly (readonly [PublicationName, Publication])[] = (Object.keys(PUBLICATIONS) as PublicationName[]).map(
  (name) => [name, PUBLICATIONS[name]],
)

/** The rows that are rendered from the facts of one kind of owner. */
export function rowsOf<K extends OwnerKind>(
  kind: K,
): readonly { readonly name: PublicationName; readonly row: Held<K> }[] {
  const isOf = (row: object): row is Held<K> => 'of' in row && row.of === kind && 'render' in row
  return ROWS.flatMap(([name, row]) => (isOf(row) ? [{ name, row }] : []))
}

export type Topics = ReturnType<typeof createTopics>
/** Where a command came in: what it is for, its name, and its argument if the topic has one. */
export type CommandTopic = NonNullable<ReturnType<Topics['parseCommand']>>

const OF_BRIDGE = '{base}/bridge/'

/** A topic of the bridge, as a member of a fleet has it. */
const formOf = (topic: string, member: string) => topic.replace(OF_BRIDGE, `${OF_BRIDGE}${member}/`)

/**
 * The topics below one base topic. Those of the bridge of a fleet's `member` have its name after `bridge`. `alone`: no
 * other member takes over its hubs.
 */
export function createTopics(base: string, member?: string, alone = false) {
  const below = ROWS.filter(([, { topic }]) => topic.startsWith('{base}'))
  const ownForm = (topic: string) => (member === undefined ? topic : formOf(topic, member))
  const readable = below.map(([name, row]) => ({ name, row, template: new Template(ownForm(row.topic), base) }))
  const templates = new Map<string, Template>(readable.map(({ name, template }) => [name, template]))
  const fill = (name: PublicationName, parameters?: Parameters) => templates.get(name)?.fill(parameters) ?? ''
  const filtersOf = (retained: boolean) =>
    widest(below.filter(([, row]) => row.retained === retained).map(([name]) => fill(name)))
  const ofMembers = below
    .filter(([, { topic }]) => topic.startsWith(OF_BRIDGE))
    .map(([name, { topic }]) => ({ name, template: new Template(formOf(topic, '{member}'), base) }))
  const availability = new Template(PUBLICATIONS.bridgeState.topic, base).fill()
  return {
    base,
    /** The member of a fleet that has these topics; `null`: there is no fleet. */
    member: member ?? null,
    /** Says whether the hubs are served at all: for a single bridge, its own state. */
    availability,
    /** Says whether the hubs of this bridge are served. */
    hubsAvailability: alone ? fill('bridgeState', {}) : availability,
    /** What only payloads of bridges with this base topic hold: the beginning of a bridge's state topic in JSON. */
    mark: JSON.stringify(`${base}/bridge/`).slice(0, -1),
    /** The state topic of any member of a fleet. */
    memberState: (name: string) => new Template(formOf(PUBLICATIONS.bridgeState.topic, name), base).fill(),
    /** The topic of a row. */
    of: <N extends PublicationName>(name: N, parameters: PublicationParameters<N>) => fill(name, parameters),
    /** The same for any row; an owner carries the parameters that its rows take. */
    fill,
    /** The filter of all topics of a row for which the given parameters are so. */
    filterOf: fill,
    bridgeCommand: (command: string) => `${base}/bridge/cmd/${command}`,
    hubCommand: (hub: string, command: string) => `${base}/${hub}/cmd/${command}`,
    /** With a setting's name for the commands that have one in their topic. */
    appCommand: (hub: string, app: string, command: string, setting?: string) =>
      `${base}/${hub}/app/${encodeLevel(app)}/cmd/${command}${setting === undefined ? '' : `/${encodeLevel(setting)}`}`,
    /** Command topics, those of hubs that are not there included: they are answered too. */
    commandFilters: [`${base}/+/cmd/#`, `${base}/+/app/+/cmd/#`],
    /** Everything retained that the bridge owns below the base topic. */
    retainedFilters: filtersOf(true),
    /** Everything that the bridge writes below the base topic and that the broker must not keep. */
    transientFilters: filtersOf(false),
    /** Everything that members of a fleet, whoever they are, write as bridges. */
    memberFilters: ofMembers.map(({ template }) => template.fill()),

    /** Reads a topic of ours; `undefined` for any other. */
    parse(topic: string): OwnTopic | undefined {
      const levels = levelsBelow(base, topic)
      if (levels === undefined) return undefined
      for (const { name, row, template } of readable) {
        const parameters = template.matchLevels(levels)
        const owner = parameters && ownerOf(row.of, parameters)
        if (owner !== undefined) return { name, row, owner }
      }
      return undefined
    },

    /** Reads a topic of a member of a fleet as a bridge, whoever that is; `undefined` for any other. */
    parseMember(topic: string): { readonly name: PublicationName; readonly member: string } | undefined {
      for (const { name, template } of ofMembers) {
        const member = template.match(topic)?.['member']
        if (member !== undefined && MEMBER_NAME.test(member)) return { name, member }
      }
      return undefined
    },

    /** Reads a command topic; `undefined` for any other. */
    parseCommand(topic: string) {
      const levels = levelsBelow(base, topic)
      const [owner, ...rest] = levels ?? []
      if (owner === undefined) return undefined
      const at = rest[0] === 'app' ? 2 : 0
      if (rest[at] !== 'cmd') return undefined
      const [command = '', ...more] = rest.slice(at + 1)
      const target: 'app' | 'bridge' | 'hub' = at === 2 ? 'app' : owner === 'bridge' ? 'bridge' : 'hub'
      return {
        target,
        hub: owner === 'bridge' ? null : owner,
        /** `undefined`: the level stands for no id. */
        app: at === 2 ? decodeLevel(rest[1] ?? '') : null,
        command,
        argument: more.length === 0 ? undefined : more.join('/'),
        /** Where the answer goes if the request names no topic of its own. */
        result: [base, owner, ...rest.with(at, 'result')].join('/'),
      }
    },

    /**
     * Whether an answer may be sent there: below a result topic, or on a plain topic that is none of the bridge's or of
     * Home Assistant's discovery, and below one of those that configuration names, if it names any.
     * @param only first levels of the topics that configuration names
     */
    mayAnswerOn(topic: string, discoveryPrefix: string, only: readonly string[]): boolean {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what a topic must not hold.
      if (topic === '' || topic.startsWith('$') || /[+#\u0000]/.test(topic)) return false
      const levels = levelsBelow(base, topic)
      if (levels !== undefined) return levels[levels[1] === 'app' ? 3 : 1] === 'result' && !this.parse(topic)
      const isBelow = (prefix: string) => topic === prefix || topic.startsWith(`${prefix}/`)
      return !isBelow(base) && !isBelow(discoveryPrefix) && (only.length === 0 || only.some(isBelow))
    },
  }
}

/** First levels that are no hub's. */
const NO_HUBS: ReadonlySet<string> = new Set(['bridge', 'fleet', 'rollout'])

/** `undefined` if a level cannot be a name. */
function ownerOf(kind: Publication['of'], { hub, app, name }: Parameters): Owner | undefined {
  if (kind === 'bridge') return { kind }
  if (hub === undefined || NO_HUBS.has(hub) || kind === 'device') return undefined
  if (kind === 'hub') return { kind, hub }
  // A level that stands for no id is a topic of the table all the same, but of no app.
  const id = decodeLevel(app ?? '') ?? ''
  return kind === 'app' ? { kind, hub, app: id } : { kind, hub, app: id, name: decodeLevel(name ?? '') ?? '' }
}
