/** Every topic of the MQTT contract: how it is written and how it is read back. Nobody else puts one together. */

const KEPT = /[A-Za-z0-9._-]/
const PLAIN = /^[A-Za-z0-9._-]+$/
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * An id or name as one topic level: reversible, and free of `/ + # $` and NUL. A level that would be empty is a lone
 * `%`, which no other text is written as.
 */
export function encodeLevel(text: string): string {
  if (text === '') return '%'
  if (PLAIN.test(text) && text !== '.' && text !== '..') return text
  const all = text === '.' || text === '..'
  let level = ''
  for (const byte of encoder.encode(text)) {
    const char = String.fromCharCode(byte)
    level += !all && KEPT.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return level
}

/** The id or name that a level stands for; `undefined` if it stands for none. */
export function decodeLevel(level: string): string | undefined {
  if (PLAIN.test(level)) return level
  if (level === '%') return ''
  if (level === '' || /%(?![0-9A-Fa-f]{2})/.test(level)) return undefined
  const bytes: number[] = []
  for (const part of level.match(/%..|[^%]+/g) ?? []) {
    if (part.startsWith('%')) bytes.push(Number.parseInt(part.slice(1), 16))
    else bytes.push(...encoder.encode(part))
  }
  try {
    return decoder.decode(new Uint8Array(bytes))
  } catch {
    return undefined
  }
}

/** Where a command came in: what it is for, its name, and its argument if the topic has one. */
export interface CommandTopic {
  readonly target: 'bridge' | 'hub' | 'app'
  readonly hub: string | null
  /** `undefined`: the level stands for no id. */
  readonly app: string | null | undefined
  readonly command: string
  readonly argument: string | undefined
  /** Where the answer goes if the request names no topic of its own. */
  readonly result: string
}

export type Topics = ReturnType<typeof createTopics>

/** The topics below one base topic. */
export function createTopics(base: string) {
  const appTopic = (hub: string, app: string) => `${base}/${hub}/app/${encodeLevel(app)}`
  return {
    base,
    bridgeState: `${base}/bridge/state`,
    bridgeInfo: `${base}/bridge/info`,
    bridgeHealth: `${base}/bridge/health`,
    bridgeLogLevel: `${base}/bridge/log-level`,
    /** Where the bridge remembers under which prefixes Home Assistant's devices are. */
    bridgeDiscovery: `${base}/bridge/discovery`,
    /** Where the bridge sends itself a message to learn whether it may publish and read. */
    bridgeProbe: `${base}/bridge/probe`,
    /** Where bridges hear of each other. */
    bridgePresence: `${base}/bridge/presence`,
    hubState: (hub: string) => `${base}/${hub}/state`,
    hubInfo: (hub: string) => `${base}/${hub}/info`,
    hubSummary: (hub: string) => `${base}/${hub}/summary`,
    hubEvent: (hub: string) => `${base}/${hub}/event`,
    app: appTopic,
    appEvent: (hub: string, app: string) => `${appTopic(hub, app)}/event`,
    appUpdate: (hub: string, app: string) => `${appTopic(hub, app)}/update`,
    setting: (hub: string, app: string, name: string) => `${appTopic(hub, app)}/setting/${encodeLevel(name)}`,
    bridgeCommand: (command: string) => `${base}/bridge/cmd/${command}`,
    hubCommand: (hub: string, command: string) => `${base}/${hub}/cmd/${command}`,
    /** With a setting's name for the commands that have one in their topic. */
    appCommand: (hub: string, app: string, command: string, setting?: string) =>
      `${appTopic(hub, app)}/cmd/${command}${setting === undefined ? '' : `/${encodeLevel(setting)}`}`,
    /** Command topics, those of hubs that are not there included: they are answered too. */
    commandFilters: [`${base}/+/cmd/#`, `${base}/+/app/+/cmd/#`],
    /** Whether the bridge and its hubs are there. */
    stateFilter: `${base}/+/state`,
    /** Everything retained that the bridge owns. */
    retainedFilters: [
      `${base}/bridge/health`,
      `${base}/bridge/log-level`,
      `${base}/bridge/discovery`,
      `${base}/+/state`,
      `${base}/+/info`,
      `${base}/+/summary`,
      `${base}/+/app/+`,
      `${base}/+/app/+/update`,
      `${base}/+/app/+/setting/+`,
    ],

    /** The name of the hub (or `bridge`) that a retained topic of ours belongs to. */
    ownerOf(topic: string): string | undefined {
      return levelsBelow(base, topic)?.[0]
    },

    /** Reads a command topic; `undefined` for one that is none. */
    parseCommand(topic: string): CommandTopic | undefined {
      const levels = levelsBelow(base, topic)
      const [owner, ...rest] = levels ?? []
      if (owner === undefined) return undefined
      const at = rest[0] === 'app' ? 2 : 0
      if (rest[at] !== 'cmd') return undefined
      const [command = '', ...more] = rest.slice(at + 1)
      const target = at === 2 ? 'app' : owner === 'bridge' ? 'bridge' : 'hub'
      const head = [base, owner, ...rest.slice(0, at), 'result']
      return {
        target,
        hub: owner === 'bridge' ? null : owner,
        app: at === 2 ? decodeLevel(rest[1] ?? '') : null,
        command,
        argument: more.length === 0 ? undefined : more.join('/'),
        result: [...head, ...rest.slice(at + 1)].join('/'),
      }
    },

    /** Whether an answer may be sent there: a plain topic, and none on which the bridge itself says or hears something. */
    mayAnswerOn(topic: string): boolean {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what a topic must not hold.
      if (topic === '' || topic.startsWith('$') || /[+#\u0000]/.test(topic)) return false
      const levels = levelsBelow(base, topic)
      return levels === undefined || levels[levels[1] === 'app' ? 3 : 1] === 'result'
    },
  }
}

function levelsBelow(base: string, topic: string): string[] | undefined {
  return topic.startsWith(`${base}/`) ? topic.slice(base.length + 1).split('/') : undefined
}
