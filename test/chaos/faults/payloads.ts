/** Unexpected but valid JSON from the hub: deep, huge, late, or of a wrong shape. */
import { setTimeout as after } from 'node:timers/promises'
import { isRecord } from '../../../src/base/json.ts'
import type { Reply } from '../../support/http-gateway.ts'
import { parse } from '../answers.ts'
import { appTopic, read, WRITES } from '../commands.ts'
import { PUBLISHED_SETTING, publishedApps } from '../model.ts'
import { type Fault, type Faults, kindOf, type Scene } from './fault.ts'
import { altered, during, isList, json } from './gateway.ts'

const LEVELS = 5000
const HUGE = 20 * 1024 * 1024
const EVENTS = ['app.create', 'app.update'] as const

const hub = kindOf({})

/** Built as a string, because `JSON.stringify` may overflow the stack for such a deep value. */
const deepText = '['.repeat(LEVELS) + ']'.repeat(LEVELS)

/** @param value the JSON text of the key's new value */
function withValue({ text, ...answer }: Reply, key: string, value: string): Reply {
  const rest = parse(text)
  const kept = isRecord(rest) ? Object.entries(rest).filter(([name]) => name !== key) : []
  const members = kept.map(([name, one]) => `${JSON.stringify(name)}:${JSON.stringify(one)}`)
  return { ...answer, text: `{${[...members, `${JSON.stringify(key)}:${value}`].join()}}` }
}

const isSettings = (path: string) => /\/setting\/?(\?|$)/.test(path)
const isSetting = (path: string) => /\/setting\/[^/?]+/.test(path)

/** Makes the bridge read settings, both for commands and for the settings that it publishes. */
async function readSettings({ load, world, random }: Scene): Promise<void> {
  for (const id of publishedApps) {
    if (world.hub.apps.has(id)) world.hub.change(id, { name: `${id} ${random.word()}` })
    void load.issue(read(appTopic(id, 'get-settings')))
    void load.issue(read(appTopic(id, `get-setting/${PUBLISHED_SETTING}`)))
    await after(random.int(50, 400))
  }
}

/** Replaces the published setting, and each setting that is read alone, with the JSON `value` for a few seconds. */
const settingsAre =
  (value: string): Fault['run'] =>
  async (scene) => {
    const rule = during(
      () =>
        ({ method, path }) => {
          if (method !== 'GET') return undefined
          if (isSettings(path)) return { change: (answer) => withValue(answer, PUBLISHED_SETTING, value) }
          return isSetting(path) ? { change: (answer) => ({ ...answer, text: value }) } : undefined
        },
      { ms: [2000, 4000] },
    )
    await Promise.all([rule(scene), readSettings(scene)])
  }

/** Replaces one field of the first record in each list with the JSON text `value`. */
const recordsHave = (value: string) =>
  during(({ random }) => {
    const field = random.pick([
      'images',
      'author',
      'name',
      'usage',
      'settings',
      'updateAvailable',
      'unheardOf',
    ] as const)
    return (request) => {
      if (!isList(request)) return undefined
      return {
        change(answer) {
          const [[id, record] = ['', {}]] = Object.entries(Object(parse(answer.text)))
          const changed = withValue({ ...answer, text: JSON.stringify(record) }, field, value)
          return withValue(answer, id, changed.text)
        },
      }
    }
  })

function emitting(payload: (scene: Scene, id: string) => unknown, gapMs = 60): Fault['run'] {
  return async (scene) => {
    const { world, random } = scene
    for (let left = random.int(3, 12); left > 0; left -= 1) {
      const id = random.pick([...world.hub.apps.keys()])
      world.hub.emit(random.pick(EVENTS), payload(scene, id))
      await after(random.int(0, gapMs))
    }
    await after(random.int(500, 1500))
  }
}

/** Puts the API key at the end of strings that the bridge truncates: in refusals, and in the fields of apps. */
async function repeatKey({ world, load, random }: Scene): Promise<void> {
  const long = (length: number) => 'x'.repeat(length - world.secrets.key.length + random.int(1, 2)) + world.secrets.key
  const changed = { author: long(1024), crashedMessage: long(1024), version: long(1024) }
  world.gateway.rule((request) => {
    if (request.method === 'POST' || request.method === 'PUT') return json({ error: long(200) }, 400)
    if (!isList(request)) return undefined
    return altered((list) =>
      Object.fromEntries(Object.entries(list).map(([id, one]) => [id, isRecord(one) ? { ...one, ...changed } : one])),
    )
  })
  for (let left = 12; left > 0; left -= 1) {
    const subject = load.subject()
    if (subject !== undefined) void load.issue(WRITES.set(subject))
    await after(random.int(150, 250))
  }
  world.gateway.heal()
}

const unknown = (id: string) => [
  { id: `${id}\u0000` },
  { id: '__proto__', name: 'x' },
  { id: 'constructor' },
  { error: 'starting up', id: 'error' },
]

const nonsense = (id: string): readonly unknown[] => [
  null,
  7,
  'text',
  [],
  [id],
  {},
  { id: 7 },
  { id: '' },
  { id: ['a'] },
  { id: null, name: 'x' },
  { name: { toString: 1 } },
  { error: 'starting up' },
  { error: { code: 503 } },
]

export const PAYLOAD_FAULTS: Faults = {
  'the key in long texts': hub(repeatKey),
  'deep JSON in settings': hub(settingsAre(deepText)),
  'deep JSON in records': hub(recordsHave(deepText)),
  'deep JSON as every answer': hub(
    during(
      () =>
        ({ upgrade }) =>
          upgrade ? undefined : { ...json(null), text: deepText },
    ),
  ),
  'deep JSON in realtime packets': hub(async ({ world, random }) => {
    for (let left = random.int(3, 12); left > 0; left -= 1) {
      const record = JSON.stringify(world.hub.apps.get(random.pick([...world.hub.apps.keys()])))
      const field = random.pick(['images', 'author', 'name', 'usage', 'unheardOf'] as const)
      const { text } = withValue({ ...json(null), text: record }, field, deepText)
      world.gateway.sendText(`42/api,["homey:manager:apps","${random.pick(EVENTS)}",${text}]`)
      await after(random.int(0, 60))
    }
    await after(random.int(500, 1500))
  }),
  'huge settings': hub(settingsAre(JSON.stringify('x'.repeat(HUGE)))),
  'huge records': hub(recordsHave(JSON.stringify('x'.repeat(HUGE)))),
  'huge realtime packets': hub(
    emitting(({ world }, id) => ({ ...world.hub.apps.get(id), icon: 'x'.repeat(HUGE / 4) }), 600),
    { stallMs: 3000 },
  ),
  'nonsense in realtime packets': hub(async ({ world, random }) => {
    for (let left = random.int(5, 20); left > 0; left -= 1) {
      const id = random.pick([...world.hub.apps.keys()])
      // Send unknown ids only in updates, because an `app.create` with an unknown id would create an app.
      if (random.chance(0.3)) world.hub.emit('app.update', random.pick(unknown(id)))
      else world.hub.emit(random.pick([...EVENTS, 'app.delete', 'app.sing']), random.pick(nonsense(id)))
      await after(random.int(0, 60))
    }
    await after(random.int(500, 1500))
  }),
  'updates after the removal of an app': hub(async ({ world, random }) => {
    const { hub } = world
    for (let left = random.int(2, 5); left > 0; left -= 1) {
      const id = `org.visitor.late${random.word()}`
      world.install({ id, name: 'soon gone' })
      const last = { ...hub.apps.get(id) }
      await after(random.int(200, 600))
      hub.uninstall(id)
      for (let more = random.int(1, 3); more > 0; more -= 1) {
        await after(random.int(0, 120))
        hub.emit('app.update', { ...last, name: 'not quite gone' })
      }
    }
    await after(1200)
  }),
  'answers overtaken by events': hub(
    async (scene) => {
      const { world, random, load } = scene
      const slow = during(
        () =>
          ({ method, path }) =>
            method === 'GET' && path.includes('/apps/app')
              ? {
                  async change(answer) {
                    await after(random.int(200, 900))
                    return answer
                  },
                }
              : undefined,
        { ms: [2500, 4500] },
      )
      const living = async () => {
        for (let left = 4; left > 0; left -= 1) {
          const id = `org.visitor.brief${random.word()}`
          world.install({ id, name: 'soon gone' })
          await after(random.int(100, 400))
          void load.issue(read(appTopic(id, 'get')))
          await after(random.int(50, 200))
          world.hub.uninstall(id)
          await after(random.int(50, 300))
        }
      }
      await Promise.all([slow(scene), living()])
    },
    { stallMs: 1000 },
  ),
}
