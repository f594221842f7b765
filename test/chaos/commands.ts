/** Creates random commands, many of them invalid. `Load` sends no two commands that cause the same request. */
import type { AppRecord, EmulatedHub } from '../../src/emulator/hub.ts'
import type { Random } from '../support/random.ts'
import { BASE, HUB, level } from './model.ts'
import { SPARE } from './surroundings.ts'
import type { Shows } from './watch.ts'

export interface Draft {
  readonly topic: string
  /** The payload's keys, except those of the envelope. A string or a buffer is the whole payload. */
  readonly payload: Readonly<Record<string, unknown>> | string | Buffer
  readonly hubRequest: string | null
  readonly write: boolean
  readonly kind: 'good' | 'bad'
  /** Called when the answer arrives. Returns `true` if the hub shows the effect that an `ok` confirms. */
  readonly shows?: Shows
}

export interface Subject {
  readonly hub: EmulatedHub
  readonly random: Random
  readonly app: string
  /** A word that no earlier command contains. */
  readonly word: string
  readonly canary: string
}

export const appTopic = (app: string, command: string) => `${BASE}/${HUB}/app/${level(app)}/cmd/${command}`
export const hubTopic = (command: string) => `${BASE}/${HUB}/cmd/${command}`

export function write(topic: string, hubRequest: string, payload: Draft['payload'] = {}, shows?: Shows): Draft {
  return { topic, payload, hubRequest, write: true, kind: 'good', ...(shows !== undefined && { shows }) }
}

/** Creates a check of an app's record. The check also passes if the app was removed after the command. */
const showing =
  (app: string, shows: (record: AppRecord) => boolean): Shows =>
  ({ apps }) => {
    const record = apps.get(app)
    return record === undefined || shows(record)
  }

export const WRITES = {
  unset: ({ app, hub, word }) => {
    const spares = Object.keys(hub.settings(app)).filter((name) => name.startsWith(SPARE))
    const name = spares[Number(word) % Math.max(1, spares.length)] ?? word
    const shows: Shows = (now) => now.settings(app)[name] === undefined
    return write(appTopic(app, `unset-setting/${name}`), `unsetAppSetting ${app} ${name}`, {}, shows)
  },
  uninstall: ({ app }) =>
    write(appTopic(app, 'uninstall'), `uninstallApp ${app}`, { confirm: app, purge_settings: true }, ({ apps }) => {
      return !apps.has(app)
    }),
  set: ({ app, word }) =>
    write(
      appTopic(app, 'set-setting'),
      `setAppSetting ${app} ${word}`,
      { name: word, value: [word] },
      (hub) => !hub.apps.has(app) || JSON.stringify(hub.settings(app)[word]) === JSON.stringify([word]),
    ),
  switch: ({ app, hub }) => {
    const on = hub.apps.get(app)?.enabled !== true
    const shows = showing(app, ({ enabled }) => enabled === on)
    return write(appTopic(app, on ? 'enable' : 'disable'), `${on ? 'enable' : 'disable'}App ${app}`, {}, shows)
  },
  autoupdate: ({ app, hub }) => {
    const autoupdate = hub.apps.get(app)?.autoupdate !== true
    const shows = showing(app, (record) => record.autoupdate === autoupdate)
    return write(appTopic(app, 'update'), `updateApp ${app}`, { autoupdate }, shows)
  },
  /** Changes the channel. The hub then reinstalls the app. */
  channel: ({ app, hub, random }) => {
    const channels = hub.flavour === 'newer' ? ['live', 'test'] : ['stable', 'beta', 'alpha']
    const channel = random.pick(channels.filter((one) => one !== hub.apps.get(app)?.channel))
    const shows = showing(app, (record) => record.channel === channel)
    return write(appTopic(app, 'update'), `installFromAppStore ${app}`, { channel }, shows)
  },
  install: ({ app }) => write(hubTopic('install'), `installFromAppStore ${app}`, { id: app }),
} satisfies Record<string, (subject: Subject) => Draft>

export function read(topic: string, payload: Draft['payload'] = {}, hubRequest: string | null = null): Draft {
  return { topic, payload, hubRequest, write: false, kind: 'good' }
}

const DRAFTS: readonly [number, (subject: Subject) => Draft][] = [
  [
    5,
    ({ app, word, canary }) =>
      write(appTopic(app, `set-setting/${word}`), `setAppSetting ${app} ${word}`, JSON.stringify(`${canary} ${word}`)),
  ],
  [5, WRITES.set],
  [2, WRITES.unset],
  [5, ({ app }) => write(appTopic(app, 'restart'), `restartApp ${app}`)],
  [2, WRITES.switch],
  [
    2,
    ({ app, hub, random }) => {
      const words = hub.apps.get(app)?.autoupdate ? ['OFF', 'off', 'false', '0'] : ['ON', 'on', 'true', '1']
      return write(appTopic(app, 'autoupdate'), `updateApp ${app}`, random.pick(words))
    },
  ],
  [2, WRITES.autoupdate],
  [1, ({ app }) => write(appTopic(app, 'install'), `installFromAppStore ${app}`)],
  [1, ({ app }) => write(appTopic(app, 'garbage-collect'), `garbageCollectApp ${app}`)],
  [1, WRITES.uninstall],
  [4, ({ word }) => write(hubTopic('speak'), `say ${word}`, { text: word })],
  [2, ({ app }) => write(appTopic(app, 'get-std'), `getAppStd ${app}`)],
  [2, ({ app }) => read(appTopic(app, 'get'))],
  [1, ({ app }) => read(appTopic(app, 'get-settings'))],
  [1, ({ app }) => read(appTopic(app, 'get-locales'))],
  [1, () => read(hubTopic('get-apps'), { filter: { enabled: true } })],
  [1, () => read(hubTopic('refresh'))],
  [2, () => read(`${BASE}/bridge/cmd/ping`)],
  [6, bad],
]

const TOTAL = DRAFTS.reduce((sum, [weight]) => sum + weight, 0)

export function draft(subject: Subject): Draft {
  let left = subject.random.next() * TOTAL
  for (const [weight, make] of DRAFTS) {
    left -= weight
    if (left < 0) return make(subject)
  }
  return bad(subject)
}

/** Creates a message that the bridge must reject without a request to the hub. */
function bad({ random, app, word, canary }: Subject): Draft {
  const deep = `${'['.repeat(40)}${']'.repeat(40)}`
  const nonsense: readonly [string, Draft['payload']][] = [
    [appTopic(app, 'restart'), '{"transaction":'],
    [appTopic(app, 'restart'), 'restart'],
    [appTopic(app, 'restart'), '[]'],
    [appTopic(app, 'restart'), { unheard_of: canary }],
    [appTopic(app, 'restart'), Buffer.from([0xff, 0xfe, 0x00, 0x80])],
    [appTopic(app, 'restart'), Buffer.alloc(70_000, 0x20)],
    [appTopic(app, 'restart'), '{"expires_at":"soon"}'],
    [appTopic(app, 'restart'), `{"message":${deep}}`],
    [appTopic(app, 'set-setting'), { value: 1 }],
    [appTopic(app, `set-setting/${word}`), deep],
    [appTopic(app, 'set-setting/%FF'), '1'],
    [appTopic(app, 'set-setting/a/b'), '1'],
    [appTopic(app, 'uninstall'), { confirm: `${app}x` }],
    [appTopic(app, 'update'), {}],
    [appTopic(app, 'update'), { autoupdate: 'true' }],
    [appTopic(app, 'autoupdate'), 'perhaps'],
    [appTopic(app, 'dance'), {}],
    [appTopic(`nobody-${word}`, 'restart'), {}],
    [`${BASE}/nowhere/app/${level(app)}/cmd/restart`, {}],
    [`${BASE}/${HUB}/app/%zz/cmd/restart`, {}],
    [hubTopic('speak'), ''],
    [hubTopic('speak'), { text: 7 }],
    [hubTopic('get-apps'), { filter: { sate: 'running' } }],
    [`${BASE}/bridge/cmd/log-level`, 'loud'],
  ]
  const [topic, payload] = random.pick(nonsense)
  return { topic, payload, hubRequest: null, write: false, kind: 'bad' }
}
