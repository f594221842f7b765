/** Builds and parses the topics in `publications.ts`, and command topics. No other module builds topics. */
import { MEMBER_NAME } from '../base/member-name.ts'
import {
  type Owner,
  type OwnerKind,
  PUBLICATIONS,
  type Publication,
  type PublicationName,
  type PublicationParameters,
  type RetainedRow,
} from './publications.ts'
import { decodeLevel, encodeLevel, levelsBelow, type Parameters, Template, widest } from './templates.ts'

export interface OwnTopic {
  readonly name: PublicationName
  readonly row: Publication
  readonly owner: Owner
}

const ROWS: readonly (readonly [PublicationName, Publication])[] = (Object.keys(PUBLICATIONS) as PublicationName[]).map(
  (name) => [name, PUBLICATIONS[name]],
)

/** Returns the rows that are rendered from the facts of one kind of owner. */
export function rowsOf<K extends OwnerKind>(
  kind: K,
): readonly { readonly name: PublicationName; readonly row: RetainedRow<K> }[] {
  const isOf = (row: object): row is RetainedRow<K> => 'of' in row && row.of === kind && 'render' in row
  return ROWS.flatMap(([name, row]) => (isOf(row) ? [{ name, row }] : []))
}

export type Topics = ReturnType<typeof createTopics>
export type CommandTopic = NonNullable<ReturnType<Topics['parseCommand']>>

const OF_BRIDGE = '{base}/bridge/'

/** Returns the topic that a fleet member uses instead of a bridge topic. */
const formOf = (topic: string, member: string) => topic.replace(OF_BRIDGE, `${OF_BRIDGE}${member}/`)

/** A fleet member's own topics have `member` after `bridge`. `alone` means that no other member takes over its hubs. */
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
    /** The name of the fleet member; `null` outside a fleet. */
    member: member ?? null,
    /** The topic that shows whether any bridge serves the hubs; for a single bridge, its own state topic. */
    availability,
    /** The topic that shows whether the hubs of this bridge are served. */
    hubsAvailability: alone ? fill('bridgeState', {}) : availability,
    /** The start of a bridge's state topic in JSON. Only payloads of bridges on this base topic contain this text. */
    mark: JSON.stringify(`${base}/bridge/`).slice(0, -1),
    memberState: (name: string) => new Template(formOf(PUBLICATIONS.bridgeState.topic, name), base).fill(),
    of: <N extends PublicationName>(name: N, parameters: PublicationParameters<N>) => fill(name, parameters),
    /** Like `of`, for rows whose names are not known at compile time. With missing parameters, returns a filter. */
    fill,
    bridgeCommand: (command: string) => `${base}/bridge/cmd/${command}`,
    hubCommand: (hub: string, command: string) => `${base}/${hub}/cmd/${command}`,
    /** Adds the setting's name for commands that have it in their topic. */
    appCommand: (hub: string, app: string, command: string, setting?: string) =>
      `${base}/${hub}/app/${encodeLevel(app)}/cmd/${command}${setting === undefined ? '' : `/${encodeLevel(setting)}`}`,
    /** Filters for command topics. They include unknown hubs, because commands to unknown hubs are answered too. */
    commandFilters: [`${base}/+/cmd/#`, `${base}/+/app/+/cmd/#`],
    retainedFilters: filtersOf(true),
    /** Filters for all topics of the bridge below the base topic on which nothing may be retained. */
    transientFilters: filtersOf(false),
    /** Filters for all bridge topics of all fleet members. */
    memberFilters: ofMembers.map(({ template }) => template.fill()),

    /** Parses a topic of the bridge; returns `undefined` for other topics. */
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

    /** Parses a bridge topic of any fleet member; returns `undefined` for other topics. */
    parseMember(topic: string): { readonly name: PublicationName; readonly member: string } | undefined {
      for (const { name, template } of ofMembers) {
        const member = template.match(topic)?.['member']
        if (member !== undefined && MEMBER_NAME.test(member)) return { name, member }
      }
      return undefined
    },

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
        /** The app's id; `null` for other targets, `undefined` if the topic level is not a valid id. */
        app: at === 2 ? decodeLevel(rest[1] ?? '') : null,
        command,
        argument: more.length === 0 ? undefined : more.join('/'),
        /** The topic for the answer if the request has no response topic. */
        result: [base, owner, ...rest.with(at, 'result')].join('/'),
      }
    },

    /**
     * Returns whether a topic is a result topic, or outside of the base topic and the discovery prefix.
     * @param only the permitted first levels of topics outside the base topic; if empty, any topic is permitted
     */
    mayAnswerOn(topic: string, discoveryPrefix: string, only: readonly string[]): boolean {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: a topic must not contain NUL.
      if (topic === '' || topic.startsWith('$') || /[+#\u0000]/.test(topic)) return false
      if (topic.split('/', MAX_ANSWER_LEVELS + 1).length > MAX_ANSWER_LEVELS) return false
      const levels = levelsBelow(base, topic)
      if (levels !== undefined) return levels[levels[1] === 'app' ? 3 : 1] === 'result' && !this.parse(topic)
      const isBelow = (prefix: string) => topic === prefix || topic.startsWith(`${prefix}/`)
      return !isBelow(base) && !isBelow(discoveryPrefix) && (only.length === 0 || only.some(isBelow))
    },
  }
}

/** Brokers may close a connection that publishes to a topic with more than 128 (EMQX) or 200 levels (Mosquitto). */
const MAX_ANSWER_LEVELS = 64

/** First topic levels that cannot be the name of a hub. */
const NO_HUBS: ReadonlySet<string> = new Set(['bridge', 'fleet', 'rollout'])

function ownerOf(kind: Publication['of'], { hub, app, name }: Parameters): Owner | undefined {
  if (kind === 'bridge') return { kind }
  if (hub === undefined || NO_HUBS.has(hub) || kind === 'device') return undefined
  if (kind === 'hub') return { kind, hub }
  // A topic with an invalid id matches its row, but belongs to no app.
  const id = decodeLevel(app ?? '') ?? ''
  return kind === 'app' ? { kind, hub, app: id } : { kind, hub, app: id, name: decodeLevel(name ?? '') ?? '' }
}
